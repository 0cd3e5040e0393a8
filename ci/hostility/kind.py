"""One kind of hostile input."""


class Kind:
    """One kind of hostile input, with its share of all mutants."""

    def __init__(self, weight):
        self.weight = weight

    def excuse(self):
        """Why it cannot be tried here, if it cannot."""
        return None

    def attempt(self, chance, base, place):
        """One mutant: what is wrong, what happened, and how many hostile things were done."""
        raise NotImplementedError
