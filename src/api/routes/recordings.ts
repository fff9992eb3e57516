import { posix } from 'node:path';
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type, { type Static } from 'typebox';
import type { Registry } from '../../core/registry.ts';
import { kilnError } from '../../errors.ts';
import { localTime } from '../../lib/local-time.ts';
import { CURSOR, isId, Upload } from '../../recording/finished/entry.ts';
import type { Page, Recorded } from '../../recording/finished/recorded-index.ts';
import type { Recordings } from '../../recording/finished/recordings.ts';
import { RecordedTrack, type NamedSubtitles } from '../../recording/journal.ts';
import { answers, done, noPayload, ok } from '../envelope.ts';
import type { AllNodes } from '../forwarding/all-nodes.ts';
import { ApplicationPath, findApplication } from '../lookup.ts';

const RECORDINGS = '/v1/vhosts/:vhost/apps/:app/recordings';
const DEFAULT_LIMIT = 100;
const UP_TO_500 = '^([1-9][0-9]?|[1-4][0-9]{2}|500)$';
const MAX_NAME = 255;
/** In a query, a plus that is not encoded stands for a space. */
const DATE = '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d{1,9})?(Z|[+ -]\\d\\d:\\d\\d)$';

const date = (description: string) => Type.Optional(Type.String({ pattern: DATE, description }));
const name = (description: string) => Type.Optional(Type.String({ maxLength: MAX_NAME, description }));

const Query = Type.Object({
  limit: Type.Optional(Type.String({ pattern: UP_TO_500, description: '1 to 500, default 100' })),
  cursor: Type.Optional(Type.String({ pattern: CURSOR, description: '`cursor` of the page before' })),
  stream: name('Only those of the output stream of this name'),
  recordId: name('Only those of the recording of this id'),
  start: date('RFC 3339: only files that end later'),
  end: date('RFC 3339: only files that begin earlier'),
});

/** A WebVTT file that lies beside a recording. */
const Subtitles = Type.Object({
  label: Type.String(),
  language: Type.Optional(Type.String()),
  path: Type.String({ description: 'Below `rootPath`' }),
});

/** A finished file, or a dump. */
const Recording = Type.Object({
  type: Type.Enum(['file', 'dump'], { description: 'A file of a recording, or a folder of HLS' }),
  id: Type.String({ description: 'Unique; sorts by `startTime`' }),
  recordId: Type.String({ description: '`id` of the recording or dump' }),
  transactionId: Type.Optional(Type.String()),
  metadata: Type.Optional(Type.String()),
  vhost: Type.String(),
  app: Type.String(),
  stream: Type.String(),
  sequence: Type.Optional(Type.Integer()),
  node: Type.String({ description: 'Node that has the file' }),
  rootPath: Type.String(),
  path: Type.String({ description: 'Below `rootPath`; of a dump the playlist to play' }),
  infoPath: Type.Optional(Type.String({ description: 'Below `rootPath`; absolute for a dump' })),
  startTime: Type.String(),
  finishTime: Type.String(),
  duration: Type.Number({ description: 'Seconds' }),
  size: Type.Integer({ description: 'Bytes' }),
  container: Type.String({ description: '`MP4`, `WebM`, `MPEG-TS`, or `fMP4` for a dump of LL-HLS' }),
  tracks: Type.Optional(Type.Array(RecordedTrack)),
  subtitles: Type.Optional(Type.Array(Subtitles)),
  isLocal: Type.Boolean({ description: 'Whether the file was not deleted after its upload' }),
  upload: Type.Optional(Upload),
});
type Recording = Static<typeof Recording>;

const RecordingPage = Type.Object({
  recordings: Type.Array(Recording),
  cursor: Type.Optional(Type.String({ description: 'Absent at the end' })),
  silentNodes: Type.Optional(Type.Array(Type.String({ description: 'Nodes whose files are missing' }))),
});
export type RecordingPage = Static<typeof RecordingPage>;

const Path = Type.Object({ ...ApplicationPath.properties, recording: Type.String() });

export interface RecordingRoutesOptions {
  readonly registry: Registry;
  readonly recordings: Recordings;
  readonly nodes: AllNodes;
  readonly node: string;
}

/** Finished files of recordings, on all nodes. */
export function recordingRoutes(options: RecordingRoutesOptions): FastifyPluginAsyncTypebox {
  const { registry, recordings, nodes, node } = options;
  return async (app) => {
    const list = {
      params: ApplicationPath,
      querystring: Query,
      response: answers(RecordingPage),
      summary: 'List the finished files of recordings on all nodes, in the order of time',
    };
    app.get(RECORDINGS, { schema: list }, async (request, reply) => {
      const { params, query } = request;
      demandApplication(registry, params);
      const limit = query.limit === undefined ? DEFAULT_LIMIT : Number(query.limit);
      const span = { start: timeOf(query.start), end: timeOf(query.end) };
      const own = shownPage(await recordings.page(params, { ...query, ...span, limit }), node);
      const { answers: others, silent } = await nodes.each(request, reply, RecordingPage);
      return ok(merged([own, ...others.values()], limit, silent));
    });

    const one = { params: Path };
    const url = `${RECORDINGS}/:recording`;
    const show = { ...one, response: answers(Recording), summary: 'Show a finished file of a recording' };
    app.get(url, { schema: show }, async (request, reply) => {
      const { params } = request;
      demandApplication(registry, params);
      const id = idOf(params.recording);
      const entry = await recordings.find(params, id);
      if (entry !== undefined) return ok(shownFile({ id, entry }, node));
      const { answers: others, silent } = await nodes.each(request, reply, Recording, true);
      const [other] = others.values();
      if (other === undefined) throw missing(id, silent);
      return ok(other);
    });

    const remove = { ...one, response: noPayload, summary: 'Delete a finished file of a recording' };
    app.delete(url, { schema: remove }, async (request, reply) => {
      const { params } = request;
      demandApplication(registry, params);
      const id = idOf(params.recording);
      if (await recordings.remove(params, id)) return done;
      const { answers: others, silent } = await nodes.each(request, reply, Recording, true);
      const [holder] = others.keys();
      if (holder === undefined) throw missing(id, silent);
      return await nodes.pass(request, reply, holder);
    });
  };
}

/** Applications that are made on demand leave their files. @throws vhostNotFound, applicationNotFound */
function demandApplication(registry: Registry, path: Static<typeof ApplicationPath>): void {
  if (registry.vhost(path.vhost).template === undefined) findApplication(registry, path);
}

/** @throws recordingNotFound for what is no id */
function idOf(text: string): string {
  if (!isId(text)) throw kilnError('recordingNotFound', text);
  return text;
}

function missing(id: string, silent: readonly string[]) {
  return silent.length > 0 ? kilnError('recordingUnknown', id, silent.join(', ')) : kilnError('recordingNotFound', id);
}

/** Milliseconds since the epoch. @throws timeInvalid */
function timeOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const time = Date.parse(text.replace(' ', '+'));
  if (Number.isNaN(time)) throw kilnError('timeInvalid', text);
  return time;
}

/** Joins the pages of all nodes, as far as all of them have looked. */
export function merged(pages: readonly RecordingPage[], limit: number, silent: readonly string[]): RecordingPage {
  const [bound] = pages.flatMap(({ cursor }) => cursor ?? []).sort();
  const all = pages
    .flatMap(({ recordings }) => recordings)
    .filter(({ id }) => bound === undefined || id <= bound)
    .sort((one, other) => (one.id < other.id ? -1 : 1));
  const recordings = all.slice(0, limit);
  const cursor = all.length > limit ? recordings.at(-1)?.id : bound;
  return {
    recordings,
    ...(cursor !== undefined && { cursor }),
    ...(silent.length > 0 && { silentNodes: [...silent] }),
  };
}

function shownPage({ recorded, cursor }: Page, node: string): RecordingPage {
  return { recordings: recorded.map((one) => shownFile(one, node)), ...(cursor !== undefined && { cursor }) };
}

function shownFile({ id, entry }: Recorded, node: string): Recording {
  const { metadata, tracks, subtitles, upload, dump } = entry;
  const { transactionId, vhost, app, stream, sequence, path, infoPath, size, container, isLocal } = entry;
  return {
    ...{ type: dump === undefined ? ('file' as const) : ('dump' as const), id, recordId: entry.id },
    ...{ vhost, app, stream, node },
    ...(dump === undefined && { transactionId, sequence }),
    ...(metadata !== undefined && { metadata }),
    ...{ rootPath: entry.root, path },
    ...(infoPath !== '' && { infoPath }),
    startTime: localTime(entry.startTime),
    finishTime: localTime(entry.finishTime),
    duration: entry.recordTime / 1000,
    ...{ size, container, isLocal },
    ...(tracks !== undefined && { tracks: tracks.map(({ format: _, ...shown }) => shown) }),
    ...(subtitles !== undefined && { subtitles: subtitles.map((one) => shownSubtitles(one, path)) }),
    ...(upload !== undefined && { upload }),
  };
}

function shownSubtitles({ label, language, name: file }: NamedSubtitles, path: string): Static<typeof Subtitles> {
  return { label, ...(language !== undefined && { language }), path: posix.join(posix.dirname(path), file) };
}
