import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { parse } from 'yaml';
import { dashboard } from '../../grafana/generate/dashboard.ts';
import { DASHBOARDS } from '../../grafana/generate/panels.ts';
import { rulesFile } from '../../grafana/generate/rules-file.ts';
import { alerts, dashboards, GRAFANA, metricsIn, readRules, type Alert, type Panel } from '../support/api/grafana.ts';
import { anchor } from '../lint/documents.ts';

const all = [...dashboards()];

test('the dashboards are what is generated', (t) => {
  const generated = Object.entries(DASHBOARDS).map(([name, spec]) => [
    name,
    JSON.parse(JSON.stringify(dashboard(spec))),
  ]);
  t.deepEqual(Object.fromEntries(all), Object.fromEntries(generated));
});

test('dashboards have ids and titles of their own', (t) => {
  t.is(new Set(all.map(([, { uid }]) => uid)).size, all.length);
  t.is(new Set(all.map(([, { title }]) => title)).size, all.length);
});

function overlap(a: Panel, b: Panel): boolean {
  const [one, other] = [a.gridPos, b.gridPos];
  return one.x < other.x + other.w && other.x < one.x + one.w && one.y < other.y + other.h && other.y < one.y + one.h;
}

for (const [name, { panels, templating }] of all) {
  test(`the panels of ${name} can be shown`, (t) => {
    t.is(new Set(panels.map(({ id }) => id)).size, panels.length);
    const variables = new Set(['__rate_interval', ...templating.list.map((variable) => variable.name)]);
    for (const [index, panel] of panels.entries()) {
      const { title, type, gridPos, targets = [], datasource, fieldConfig } = panel;
      t.true(gridPos.x + gridPos.w <= 24, title);
      t.deepEqual(
        panels.slice(index + 1).filter((other) => overlap(panel, other)),
        [],
        title,
      );
      if (type === 'row') continue;
      t.not(datasource, undefined, title);
      t.not(fieldConfig?.defaults.unit, undefined, title);
      t.true(targets.length > 0, title);
      for (const target of targets) {
        t.deepEqual(target.datasource, { type: 'prometheus', uid: '${datasource}' }, title);
        for (const [, variable = ''] of target.expr.matchAll(/\$(\w+)/g))
          t.true(variables.has(variable), `${title}: ${variable}`);
        t.true(metricsIn(target.expr).length > 0, title);
      }
      t.is(new Set(targets.map(({ refId }) => refId)).size, targets.length, title);
    }
  });
}

test('the alerts are what is generated', (t) => {
  t.deepEqual(readRules(), parse(rulesFile()));
});

test('every alert says what is wrong, and links to what to do about it', (t) => {
  const text = readFileSync(join(GRAFANA, '../docs/troubleshoot.md'), 'utf8');
  const known = new Set(Array.from(text.matchAll(/^#+ (.+)$/gm), ([, heading = '']) => anchor(heading)));
  const linked = new Set<string>();
  for (const { alert, labels, annotations } of alerts()) {
    t.regex(alert, /^Kiln[A-Z]\w+$/);
    t.true(['warning', 'critical'].includes(labels.severity), alert);
    t.true(annotations.summary.length > 0 && annotations.description.endsWith('.'), alert);
    const { hash, pathname } = new URL(annotations.runbook_url);
    t.is(pathname, '/docs/troubleshoot.md');
    t.true(known.has(hash.slice(1)), `${alert}: ${hash}`);
    linked.add(hash);
  }
  t.is(linked.size, alerts().length);
});

test('the links of alerts lead to where the documentation is', (t) => {
  const docs = 'https://git.example.com/kiln/blob/main/docs';
  const { groups } = parse(rulesFile(`${docs}/`)) as { groups: readonly { rules: readonly Alert[] }[] };
  t.is(groups[0]?.rules[0]?.annotations.runbook_url, `${docs}/troubleshoot.md#node-down`);
  t.throws(() => rulesFile('docs'), { message: '--docs: "docs" is not an http or https URL' });
});
