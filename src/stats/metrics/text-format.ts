import type { Family, Labels, Sample } from './family.ts';

/**
 * Lines of Prometheus' text format 0.0.4 (https://prometheus.io/docs/instrumenting/exposition_formats/), which are lines of
 * OpenMetrics 1.0 as well.
 */

/** Lines above the samples of a family. @param name that it has in the format */
export function heading(name: string, { help, type }: Pick<Family, 'help' | 'type'>): string {
  return `# HELP ${name} ${escaped(help)}\n# TYPE ${name} ${type}\n`;
}

/** @param name unless the sample has one of its own */
export function sampleLine(name: string, { metricName = name, labels, sharedLabels, value }: Sample): string {
  const shared = sharedLabels && sharedText(sharedLabels);
  const own = labels && labelsText(labels);
  if (!own) return shared ? `${metricName}{${shared}} ${numberText(value)}\n` : `${metricName} ${numberText(value)}\n`;
  return `${metricName}{${own}${shared ? `,${shared}` : ''}} ${numberText(value)}\n`;
}

const sharedTexts = new WeakMap<Labels, string>();

function sharedText(labels: Labels): string {
  let text = sharedTexts.get(labels);
  if (text === undefined) sharedTexts.set(labels, (text = labelsText(labels)));
  return text;
}

function labelsText(labels: Labels): string {
  let text = '';
  for (const name in labels) text += `${text && ','}${name}="${escaped(labels[name] ?? '').replaceAll('"', '\\"')}"`;
  return text;
}

function escaped(text: string): string {
  return /[\\\n]/.test(text) ? text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n') : text;
}

function numberText(value: number): string {
  if (Number.isFinite(value)) return String(value);
  return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf';
}
