"""How the page of a story looks: wide, narrow (below 40 rem), light and dark."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --line: #8884; --ok: #2a7; --bad: #d33; --step: #37b;
        --soft: #d3322014; }
* { box-sizing: border-box; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 78rem;
       padding: 0 1rem; overflow-wrap: anywhere; }
h1 small, h2 small, h3 small, .dim { opacity: .65; font-weight: normal; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1.5rem; }
th, td { text-align: left; padding: .2rem .6rem; border-bottom: 1px solid var(--line);
         vertical-align: top; overflow-wrap: normal; }
td.lane { width: 40%; position: relative; }
.bar { position: absolute; top: .45rem; height: .8rem; min-width: 3px; border-radius: 2px;
       background: var(--step); }
.Error .bar, .Error .result, .refused, .failed { color: var(--bad); }
.Error .bar { background: var(--bad); }
.passed, .done { color: var(--ok); }
.reason, .fault { border-left: 4px solid var(--bad); background: var(--soft);
                  padding: .6rem 1rem; margin: 1rem 0; }
.reason { font-size: 1.1rem; }
.fault p { margin: .4rem 0; }
pre, code { font: 13px/1.4 ui-monospace, monospace; white-space: pre-wrap; }
tr.chosen { font-weight: 600; }
.wide { overflow-x: auto; }
.matrix td.refused { min-width: 18rem; }
section + section { border-top: 2px solid var(--line); margin-top: 2rem; }
tr.attempt td { font-weight: 600; padding-top: .8rem; }
td.at, td.took { white-space: nowrap; }
td.more { border-top: 0; }
tr.open > td { border-bottom: 0; }
.Error.open + tr > td.more { background: var(--soft); }
details pre, td.more pre { overflow-wrap: anywhere; margin: .3rem 0 .3rem 1rem; opacity: .85; }
dl.facts { display: flex; flex-wrap: wrap; gap: .2rem 1.5rem; margin: .3rem 0 1rem; }
dl.facts div { display: flex; gap: .4rem; min-width: 0; }
dl.facts dd { margin: 0; min-width: 0; }
dl.facts dt { opacity: .65; }
@media (max-width: 40rem) {
  body { margin: 1rem auto; padding: 0 .7rem; }
  h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; } h3 { font-size: 1.05rem; }
  .wide { overflow-x: visible; }
  thead { display: none; }
  table, tbody, tr, td { display: block; width: 100%; }
  tr { border-bottom: 1px solid var(--line); padding: .35rem 0; }
  tr.open { border-bottom: 0; }
  td { border: 0; padding: .05rem 0; }
  td:empty { display: none; }
  td.lane { width: 100%; height: .9rem; }
  td.lane:empty { display: block; }
  .bar { top: .2rem; height: .5rem; }
  .steps tr { display: flex; flex-wrap: wrap; column-gap: .8rem; }
  .steps td { width: auto; }
  .steps td.step { flex: 1 1 60%; }
  .steps td.lane, .steps td.more, .steps tr.attempt td, .steps td.move { flex: 1 1 100%; }
  .matrix td[data-label]::before { content: attr(data-label) ": "; opacity: .65;
                                   font-weight: normal; }
  .matrix td.refused { min-width: 0; }
  .matrix td.skipped, .matrix td.passed { display: none; }
}
"""
