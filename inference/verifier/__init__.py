"""Making the verifier: pairs of questions, training, figures. The engine only serves what comes out of here."""
