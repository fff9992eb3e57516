import Type, { type Static } from 'typebox';
import { quantileOf, type Histogram } from '../lib/histogram.ts';
import { DISTRIBUTIONS, type DistributionName, type Figures } from './figures.ts';
import type { StreamNames, StreamQuality } from './stream-quality.ts';

const Distribution = Type.Object({
  count: Type.Integer({ description: 'Number of values' }),
  sum: Type.Number(),
  average: Type.Number(),
  p50: Type.Number({ description: 'Median, as near as the buckets tell' }),
  p95: Type.Number({ description: '95 % of the values are at most so great, as near as the buckets tell' }),
  bounds: Type.Array(Type.Number(), { description: 'Upper bounds of the buckets; a last bucket has no bound' }),
  counts: Type.Array(Type.Integer(), { description: 'Values in each bucket alone' }),
});
type Distribution = Static<typeof Distribution>;

const FIGURES = {
  reports: Type.Integer({ description: 'Reports that players sent, one with each request or event' }),
  starvations: Type.Integer({ description: 'How often a buffer had run empty (bs)' }),
  droppedFrames: Type.Integer({ description: 'Frames that players dropped (dfa)' }),
  startupSeconds: Type.Optional(Distribution),
  starvationSeconds: Type.Optional(Distribution),
  bitrateRatio: Type.Optional(Distribution),
  latencySeconds: Type.Optional(Distribution),
  playbackRate: Type.Optional(Distribution),
  bufferSeconds: Type.Optional(Distribution),
  lossRatio: Type.Optional(Distribution),
  roundTripSeconds: Type.Optional(Distribution),
};
const FiguresSummary = Type.Object(FIGURES);
type FiguresSummary = Static<typeof FiguresSummary>;

const COUNTS = ['reports', 'starvations', 'droppedFrames'] as const;

/** Summary of the reports of players about an output stream. A distribution without values is left out. */
export const QualitySummary = Type.Object({
  vhost: Type.String(),
  app: Type.String(),
  stream: Type.String({ description: 'Output stream' }),
  ...FIGURES,
  renditions: Type.Array(
    Type.Object({
      rendition: Type.String({
        description:
          'Type and id of a track for LL-HLS, such as video_1; number of a variant for HLS with MPEG-TS, such as variant_0',
      }),
      ...FIGURES,
    }),
  ),
  nodes: Type.Array(
    Type.Object({
      node: Type.String(),
      reports: FIGURES.reports,
      starvations: FIGURES.starvations,
      droppedFrames: FIGURES.droppedFrames,
    }),
    { description: 'Nodes that the players asked' },
  ),
});
export type QualitySummary = Static<typeof QualitySummary>;

/** Summaries of the streams of one node. @param node its id */
export function qualitySummaries(
  streams: Iterable<StreamQuality>,
  node: string,
  wanted: Partial<StreamNames> = {},
): QualitySummary[] {
  const rows: QualitySummary[] = [];
  for (const { names, all, renditions } of streams) {
    const { vhost, app, stream } = names;
    if ((wanted.vhost ?? vhost) !== vhost || (wanted.app ?? app) !== app || (wanted.stream ?? stream) !== stream)
      continue;
    const { reports, starvations, droppedFrames } = all;
    rows.push({
      vhost,
      app,
      stream,
      ...summaryOf(all),
      renditions: Array.from(renditions, ([rendition, figures]) => ({ rendition, ...summaryOf(figures) })),
      nodes: [{ node, reports, starvations, droppedFrames }],
    });
  }
  return rows;
}

/** Joins the rows of all nodes to one for each stream, in the order of their names. */
export function joinQuality(rows: readonly QualitySummary[]): QualitySummary[] {
  const streams = Map.groupBy(rows, ({ vhost, app, stream }) => JSON.stringify([vhost, app, stream]));
  return [...streams.values()].map(joined).sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

function keyOf({ vhost, app, stream }: QualitySummary): string {
  return `${vhost}/${app}/${stream}`;
}

function joined(rows: readonly QualitySummary[]): QualitySummary {
  const [first] = rows as readonly [QualitySummary];
  const renditions = Map.groupBy(
    rows.flatMap((row) => row.renditions),
    ({ rendition }) => rendition,
  );
  return {
    vhost: first.vhost,
    app: first.app,
    stream: first.stream,
    ...sumOf(rows),
    renditions: Array.from(renditions, ([rendition, same]) => ({ rendition, ...sumOf(same) })),
    nodes: rows.flatMap(({ nodes }) => nodes),
  };
}

function sumOf(all: readonly FiguresSummary[]): FiguresSummary {
  const sum: FiguresSummary = { reports: 0, starvations: 0, droppedFrames: 0 };
  for (const one of all) {
    for (const name of COUNTS) sum[name] += one[name];
    for (const name of DISTRIBUTIONS) add(sum, name, one[name]);
  }
  return sum;
}

/** Adds values. Those of a node of another version, which has other buckets, are left out. */
function add(sum: FiguresSummary, name: DistributionName, more: Distribution | undefined): void {
  if (more === undefined) return;
  const before = sum[name];
  if (before === undefined) sum[name] = more;
  else if (String(before.bounds) === String(more.bounds))
    sum[name] = described(
      before.bounds,
      before.counts.map((count, at) => count + (more.counts[at] ?? 0)),
      before.sum + more.sum,
    );
}

function summaryOf(figures: Figures): FiguresSummary {
  const { reports, starvations, droppedFrames } = figures;
  const summary: FiguresSummary = { reports, starvations, droppedFrames };
  for (const name of DISTRIBUTIONS) {
    const { bounds, counts, sum }: Histogram = figures[name];
    if (counts.some((count) => count > 0)) summary[name] = described([...bounds], [...counts], sum);
  }
  return summary;
}

function described(bounds: number[], counts: number[], sum: number): Distribution {
  const count = counts.reduce((all, one) => all + one, 0);
  const quantile = (share: number): number => rounded(quantileOf(bounds, counts, share * count));
  return {
    count,
    sum: rounded(sum),
    average: rounded(sum / count),
    p50: quantile(0.5),
    p95: quantile(0.95),
    bounds,
    counts,
  };
}

function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}
