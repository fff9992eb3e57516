import { stringify } from 'yaml';
import { RULES, type Rule } from './rules.ts';

/** Where docs/ can be read: a placeholder, as each installation has its own copy. */
const DOCS = 'https://kiln.example/docs';

const ABOUT = ` Alerts for Prometheus, each with a link to what to do about it. Made by grafana/generate: docs/metrics.md tells how to have
 the links lead to a copy of docs/ that your operators can open.`;

/**
 * The rules in the form that Prometheus loads.
 * @param docs URL of the folder docs/, as it is shown in a browser
 * @throws Error when that is no URL of a web server
 */
export function rulesFile(docs = DOCS): string {
  if (!/^https?:$/.test(URL.parse(docs)?.protocol ?? ''))
    throw new Error(`--docs: "${docs}" is not an http or https URL`);
  const page = `${docs.replace(/\/+$/, '')}/troubleshoot.md`;
  const groups = Object.entries(RULES).map(([name, rules]) => ({
    name,
    rules: rules.map((rule) => entry(rule, page)),
  }));
  const comment = ABOUT.replaceAll(/^/gm, '#');
  return `${comment}\n${stringify({ groups }, { lineWidth: 0, singleQuote: true })}`;
}

function entry({ name, expr, lasts, severity, summary, description }: Rule, page: string): object {
  const anchor = name.replaceAll(/(?<!^)[A-Z]/g, '-$&').toLowerCase();
  return {
    alert: `Kiln${name}`,
    expr,
    ...(lasts !== undefined && { for: lasts }),
    labels: { severity },
    annotations: { summary, description, runbook_url: `${page}#${anchor}` },
  };
}
