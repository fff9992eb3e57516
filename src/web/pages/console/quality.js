import { Table } from './parts.js';

/** @import { QualityFigures, QualitySummary } from '../answers.ts' */
/** @import { Api, AppName } from './api.js' */

/**
 * `rendition`: empty for all of a stream.
 * @typedef {{ stream: string, rendition: string, figures: QualityFigures }} QualityRow
 */

/**
 * Lists what players report of output streams, and of their renditions.
 * @param {Api} api
 * @param {AppName} application
 * @param {ReadonlySet<string>} outputs
 * @returns {Promise<QualityRow[]>}
 */
export async function listQuality(api, { vhost, app }, outputs) {
  /** @type {QualitySummary[]} */
  const rows = await api.get(`/v1/cluster/quality?${new URLSearchParams({ vhost, app })}`);
  return rows
    .filter(({ stream }) => outputs.has(stream))
    .flatMap((row) => [
      { stream: row.stream, rendition: '', figures: row },
      ...row.renditions.map((figures) => ({ stream: row.stream, rendition: figures.rendition, figures })),
    ]);
}

/**
 * A table of what players report.
 * @returns {Table<QualityRow>}
 */
export function qualityTable() {
  /** @param {number | undefined} value */
  const seconds = (value) => (value === undefined ? '–' : `${value.toFixed(1)} s`);
  /** @param {QualityRow} row */
  const name = ({ stream, rendition }) => (rendition === '' ? stream : `${stream} ${rendition}`);
  /**
   * @param {string} title
   * @param {(figures: QualityFigures) => number | undefined} of
   * @param {(value: number | undefined) => string} text
   */
  const column = (title, of, text) => ({
    title,
    numeric: true,
    /** @param {QualityRow} row */
    value: ({ figures }) => text(of(figures)),
    /** @param {QualityRow} row */
    sort: ({ figures }) => of(figures) ?? -1,
  });
  /** @param {number | undefined} value */
  const count = (value) => `${value ?? 0}`;
  /** @param {number | undefined} value */
  const percent = (value) => (value === undefined ? '–' : `${Math.round(value * 100)} %`);
  return new Table(
    'Quality',
    [
      { title: 'Stream', value: name, sort: name },
      column('Reports', ({ reports }) => reports, count),
      column('Starvations', ({ starvations }) => starvations, count),
      column('Startup (p95)', ({ startupSeconds }) => startupSeconds?.p95, seconds),
      column('Latency', ({ latencySeconds }) => latencySeconds?.average, seconds),
      column('Buffer', ({ bufferSeconds }) => bufferSeconds?.average, seconds),
      column('Bitrate of the highest', ({ bitrateRatio }) => bitrateRatio?.average, percent),
      column('Dropped frames', ({ droppedFrames }) => droppedFrames, count),
    ],
    'No player has reported anything (CMCD).',
  );
}
