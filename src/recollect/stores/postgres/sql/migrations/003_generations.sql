-- Version 3: vectors of several models side by side. A model whose vectors were dropped may begin anew.
ALTER TABLE generations
    ADD COLUMN state text NOT NULL DEFAULT 'current' CHECK (state IN ('current', 'next', 'old', 'gone')),
    ADD COLUMN since timestamptz DEFAULT now();
ALTER TABLE generations DROP CONSTRAINT generations_model_dimensions_key;
