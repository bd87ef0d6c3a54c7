"""Textbook mechanisms with known truth: what an audit is measured on.

The suite of Bichsel, Steffen, Bogunovic, Vechev, *DP-Sniper: black-box discovery of
differential privacy violations using classifiers*, IEEE S&P 2021, with its parameters,
plus the Gaussian mechanism, randomised response, and mechanisms that add a fraction of
the noise that they claim. Each states its `true_epsilon` and proves it.
"""
