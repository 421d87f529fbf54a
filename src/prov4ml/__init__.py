"""The name that users import; everything is provml_lightning's."""
