"""Reports: the advice for people and programs.

In reading order; an entry uses only those before it:

    stages_text  the stages of Synergy's mechanism
    text_report  the advice as text
    review_text  the review of views that exist
    json_report  the advice as JSON
    svg_graph    schema graphs and rooted trees as SVG
    html_style   the style sheet of the HTML report
    html_report  the advice as one HTML file
"""
