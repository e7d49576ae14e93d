/** How `report.html` looks. */
export const REPORT_STYLE: string = `
:root { color-scheme: light dark; --bg: #f7f7f5; --card: #fff; --text: #1d1f23; --dim: #6a6f78; --line: #e2e2dd;
  --good: #1a7f4b; --bad: #c22f3d; --warn: #a86400; --soft-good: #e2f4ea; --soft-bad: #fbe6e8; --accent: #3a5bc7; }
@media (prefers-color-scheme: dark) { :root { --bg: #14161a; --card: #1c1f25; --text: #e6e7ea; --dim: #969ba6;
  --line: #2d323b; --good: #4cc38a; --bad: #f2707c; --warn: #e5a13d; --soft-good: #17301f; --soft-bad: #3a1c20; --accent: #8fa8f5; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 32px 20px 80px; }
h1 { font-size: 26px; margin: 0 0 4px; overflow-wrap: anywhere; } h2 { font-size: 17px; margin: 36px 0 10px; }
.dim { color: var(--dim); } .mono, pre, code { font: 12.5px/1.55 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
.badge { display: inline-block; padding: 1px 10px; border-radius: 99px; font-size: 12.5px; font-weight: 600; color: #fff; background: var(--dim); }
.badge.success { background: var(--good); } .badge.failed, .badge.failure, .badge.error { background: var(--bad); }
.badge.limit, .badge.no_changes, .badge.cancelled { background: var(--warn); }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(190px, 1fr)); gap: 10px; margin: 20px 0 0; }
.fact, details.node, .card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
.fact { padding: 9px 13px; min-width: 0; } .fact b { display: block; font-size: 12px; font-weight: 500; color: var(--dim); }
.fact span { overflow-wrap: anywhere; } .card { padding: 12px 16px; }
pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; }
.timeline { padding: 14px 16px; } .lane { display: grid; grid-template-columns: 170px 1fr 70px; gap: 12px; align-items: center; padding: 3px 0; }
.lane .name { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; } .lane.child .name { padding-left: 16px; color: var(--dim); }
.track { position: relative; height: 12px; background: var(--bg); border-radius: 6px; overflow: hidden; }
.bar { position: absolute; top: 0; bottom: 0; min-width: 3px; border-radius: 6px; background: var(--good); }
.bar.failure { background: var(--bad); } .bar.limit, .bar.cancelled { background: var(--warn); } .bar.skipped { background: var(--line); }
.lane .time { text-align: right; color: var(--dim); font-variant-numeric: tabular-nums; }
details.node { margin: 8px 0; } details.node > summary { cursor: pointer; padding: 10px 14px; display: flex; gap: 10px; align-items: center; flex-wrap: wrap; }
details.node > div { border-top: 1px solid var(--line); padding: 12px 14px; } details.node details.node { margin: 10px 0 0; }
summary .grow { flex: 1; } .out { max-height: 460px; overflow: auto; background: var(--bg); border-radius: 8px; padding: 10px 12px; margin-top: 8px; }
.checks { border-collapse: collapse; width: 100%; } .checks td { padding: 4px 8px 4px 0; border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }
.checks .word { white-space: nowrap; } .good { color: var(--good); } .bad { color: var(--bad); } .file { margin: 8px 0; } .hunk { color: var(--accent); }
.diff .row { display: block; padding: 0 8px; min-height: 1.55em; } .diff .added { background: var(--soft-good); } .diff .removed { background: var(--soft-bad); }
.notice { border-left: 4px solid var(--bad); } .notice.warn { border-left-color: var(--warn); } ul { margin: 6px 0; padding-left: 20px; } a { color: var(--accent); }
footer { margin-top: 40px; color: var(--dim); font-size: 13px; }
`;
