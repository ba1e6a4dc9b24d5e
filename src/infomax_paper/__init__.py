"""The paper's table, figures and studies."""
