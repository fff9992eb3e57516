import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parse } from 'yaml';

export const GRAFANA = join(import.meta.dirname, '../../../grafana');

export interface Target {
  readonly refId: string;
  readonly expr: string;
  readonly datasource: object;
}

export interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly datasource?: object;
  readonly targets?: readonly Target[];
  readonly fieldConfig?: { readonly defaults: { readonly unit?: string } };
}

export interface Dashboard {
  readonly uid: string;
  readonly title: string;
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string }[] };
}

/** The dashboards as Grafana loads them, by name of the file. */
export function dashboards(): Map<string, Dashboard> {
  return new Map(
    globSync(join(GRAFANA, 'dashboards/*.json')).map((file) => [
      basename(file, '.json'),
      JSON.parse(readFileSync(file, 'utf8')) as Dashboard,
    ]),
  );
}

export interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly description: string; readonly runbook_url: string };
}

interface RulesFile {
  readonly groups: readonly { readonly rules: readonly Alert[] }[];
}

/** The file of alerts. */
export function readRules(): RulesFile {
  return parse(readFileSync(join(GRAFANA, 'prometheus/kiln.rules.yml'), 'utf8')) as RulesFile;
}

/** The alerts as Prometheus loads them. */
export function alerts(): Alert[] {
  return readRules().groups.flatMap(({ rules }) => rules);
}

/** Names of Kiln's metrics in an expression, without the endings that histograms have. */
export function metricsIn(expr: string): string[] {
  return [...expr.matchAll(/\bkiln_\w+/g)].map(([name]) => name.replace(/_(?:bucket|sum|count)$/, ''));
}

/** An expression, and where it stands. */
export interface Expression {
  readonly what: string;
  readonly expr: string;
}

/** The expressions of all panels as Grafana sends them, with every variable at All, and those of all alerts. */
export function expressions(): Expression[] {
  const sent = (expr: string): string => expr.replaceAll('$__rate_interval', '30s').replaceAll(/\$\w+/g, '.*');
  const panels = [...dashboards()].flatMap(([name, { panels: all }]) =>
    all.flatMap(({ title, targets = [] }) =>
      targets.map(({ refId, expr }) => ({ what: `${name}: ${title}: ${refId}`, expr: sent(expr) })),
    ),
  );
  return [...panels, ...alerts().map(({ alert, expr }) => ({ what: alert, expr }))];
}

/** An expression with 0 and 1 as the results of its comparisons, which filter otherwise. */
export function unfiltered(expr: string): string {
  return expr.replaceAll(/ (<|>|==) /g, ' $1 bool ');
}
