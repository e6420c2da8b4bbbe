"""The style sheet of the HTML report."""

STYLE = """
:root{--ink:#0f172a;--soft:#475569;--line:#e2e8f0;--back:#f8fafc;--card:#fff;--good:#0f766e;
--bad:#b91c1c;--before:#cbd5e1;--after:#0d9488}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1080px;margin:0 auto;padding:48px 24px 96px}
header{margin-bottom:28px}
.kicker{margin:0;color:var(--good);font-weight:600;letter-spacing:.02em}
h1{font-size:34px;line-height:1.2;margin:6px 0 8px;letter-spacing:-.01em}
h2{font-size:21px;margin:44px 0 14px}
h3{font:600 15px ui-monospace,Menlo,Consolas,monospace;margin:0 0 4px}
.lead{color:var(--soft);margin:0}
.fact{color:var(--soft);font-size:14px;margin:10px 0 0}
.note{background:#fef9c3;border:1px solid #fde68a;border-radius:8px;padding:10px 14px}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(170px,1fr));gap:12px}
.figures div{background:var(--card);border:1px solid var(--line);border-radius:10px;
padding:16px 18px}
.figures b{display:block;font-size:24px;font-variant-numeric:tabular-nums}
.figures span,dt{color:var(--soft);font-size:13px}
article{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:18px 20px;
margin:0 0 14px}
article p{margin:0 0 10px;color:var(--soft);font-size:14px}
dl{display:flex;flex-wrap:wrap;gap:10px 36px;margin:0 0 12px}
dd{margin:0;font-weight:600;font-variant-numeric:tabular-nums}
pre{margin:0;padding:12px 14px;background:#0f172a;color:#e2e8f0;border-radius:8px;overflow:auto;
font:13px/1.5 ui-monospace,Menlo,Consolas,monospace;white-space:pre-wrap;overflow-wrap:anywhere}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;background:var(--card);border:1px solid var(--line);
border-radius:10px;font-size:14px}
th{text-align:left;color:var(--soft);font-weight:500;font-size:13px}
th,td{padding:8px 12px;border-bottom:1px solid var(--line);vertical-align:middle;white-space:nowrap}
tr:last-child td{border-bottom:0}
th:nth-child(n+2):nth-child(-n+5),td.n{text-align:right;font-variant-numeric:tabular-nums}
td.views{white-space:normal;font:12px ui-monospace,Menlo,Consolas,monospace;color:var(--soft);
overflow-wrap:anywhere;min-width:180px}
.good{color:var(--good);font-weight:600}.bad{color:var(--bad)}.same{color:var(--soft)}
td.bars{width:200px;min-width:140px}
td.bars i{display:block;height:6px;border-radius:3px;margin:2px 0}
i.before{background:var(--before)}i.after{background:var(--after)}
figure{margin:0 0 14px;background:var(--card);border:1px solid var(--line);border-radius:10px;
padding:14px 18px}
figcaption{color:var(--soft);font-size:14px;margin-bottom:6px}
svg{display:block;margin:0 auto;max-width:none}
details{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:12px 18px}
summary{cursor:pointer}
li{margin:6px 0;overflow-wrap:anywhere}
code{font:13px ui-monospace,Menlo,Consolas,monospace}
"""
