"""The figures and the table of Imtiaz and Sarwate, ICASSP 2016, drawn again."""
