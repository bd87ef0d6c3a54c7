"""What several families of mechanisms use: releases, step sizes, budgets."""
