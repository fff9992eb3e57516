import type { PeerRequest, PeerResponse } from '#cluster';
import { KilnError, kilnError } from '../../../errors.ts';
import type { PeerCalls } from '../../../origins/peer-calls.ts';
import type { HlsForm } from '../form.ts';
import { holdFor } from '../hold.ts';
import { markOf } from '../position.ts';
import type { OwnStream } from '../own-stream.ts';
import {
  ERROR_HEADER,
  FORMS,
  HELD_MS,
  KIND_HEADER,
  prefixOf,
  read,
  readPath,
  Report,
  TYPE_HEADER,
  type Asked,
  type ChunklistState,
  type MasterState,
  type Verdict,
} from './wire.ts';

/** For how long a segment that was put together for a node is kept for the others: they ask when it has just come. */
const JOINED_MS = 10_000;
const NO_DIRECTIVES = { msn: undefined, part: undefined, skip: false, legacy: false };

/** Finds a stream of this node. @throws sessionExists for the name of a session that a viewer elsewhere has */
export type StreamHere = (asked: Asked) => OwnStream | undefined | Promise<OwnStream | undefined>;

/** Answers other nodes for the streams of this one. */
export function answerNodes(form: HlsForm, calls: PeerCalls, find: StreamHere): void {
  calls.add(prefixOf(form), async (request) => {
    try {
      return await answer(form, find, request);
    } catch (error) {
      if (!(error instanceof KilnError)) throw error;
      return { status: error.status, headers: { [ERROR_HEADER]: error.code }, body: Buffer.from(error.message) };
    }
  });
}

async function answer(form: HlsForm, find: StreamHere, { path, body }: PeerRequest): Promise<PeerResponse> {
  const asked = readPath(form, path);
  const stream = await find(asked);
  if (stream === undefined) throw kilnError('streamNotFound', `${asked.app}/${asked.stream}`);
  switch (asked.what) {
    case 'master':
      return master(stream, asked);
    case 'chunklist':
      return await chunklist(stream, asked);
    case 'media':
      return await media(form, stream, asked);
    case 'sessions':
      return content({ players: count(stream, read(Report, body)) });
    default:
      throw kilnError('fileNotFound');
  }
}

function master(stream: OwnStream, { file, query }: Asked): PeerResponse {
  const template = stream.template(file);
  if (template === undefined) return content(null, 201);
  const session = query.get('session');
  const token = session === null ? undefined : stream.issue(session);
  if (token !== undefined) stream.begin(token);
  const state: MasterState = { run: stream.run, template: template.text, ...(token !== undefined && { token }) };
  return content(state);
}

/** Tells of a chunklist as soon as it is not where the query's `after` says, waiting for that as long as its `hold`. */
async function chunklist(stream: OwnStream, { app, stream: name, file, query }: Asked): Promise<PeerResponse> {
  const rendition = stream.rendition(file);
  if (rendition === undefined) throw kilnError('fileNotFound');
  const after = query.get('after');
  const changed = (): boolean => rendition.position !== undefined && markOf(rendition.position) !== after;
  const hold = holdOf(query);
  if (hold > 0 && !changed() && (rendition.position !== undefined || rendition.continues)) {
    await rendition.waiters.wait(changed, hold, () => {});
  }
  await stream.settled();
  if (stream.closed) throw kilnError('streamNotFound', `${app}/${name}`);
  if (stream.rendition(file) !== rendition) throw kilnError('fileNotFound');
  const { position } = rendition;
  if (position === undefined && rendition.continues) throw kilnError('streamInterrupted');
  if (position === undefined) return content(null, 201);
  const forms = query.get('forms')?.split(',') ?? [];
  const texts = FORMS.filter((form) => forms.includes(form)).map((form) => [
    form,
    rendition.text(form).plain.toString(),
  ]);
  const {
    run,
    package: { edition, interrupted, targetDuration },
  } = stream;
  const state: ChunklistState = {
    run,
    edition,
    interrupted,
    targetDuration,
    position,
    texts: Object.fromEntries(texts),
  };
  return content(state);
}

/** A part that was hinted at is held as long as the query's `hold`. */
async function media(form: HlsForm, stream: OwnStream, { file, query }: Asked): Promise<PeerResponse> {
  const found = file.endsWith(form.media) ? await stream.file(file, NO_DIRECTIVES, holdFor(holdOf(query))) : undefined;
  if (found === undefined || found.kind === 'starting' || found.kind === 'chunklist') throw kilnError('fileNotFound');
  const { kind, type, body } = found;
  return { status: 200, headers: { [KIND_HEADER]: kind, [TYPE_HEADER]: type }, body: joined(body) };
}

/** By the parts of a segment. */
const known = new WeakMap<readonly Buffer[], Buffer>();

/** A file in one piece: made once for all nodes that ask for it at about the same time. */
function joined(parts: readonly Buffer[]): Buffer {
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) return only;
  let whole = known.get(parts);
  if (whole === undefined) {
    known.set(parts, (whole = Buffer.concat(parts)));
    setTimeout(() => known.delete(parts), JOINED_MS).unref();
  }
  return whole;
}

/** Milliseconds that a call may be held. */
function holdOf(query: URLSearchParams): number {
  const hold = Number(query.get('hold'));
  return hold > 0 ? Math.min(hold, HELD_MS) : 0;
}

/** Counts the players of another node. */
function count(stream: OwnStream, { players, bytes }: Report): Verdict[] {
  if (bytes > 0) stream.sent(bytes, undefined);
  const now = Date.now();
  return players.map(([token, sent, idleMs]) => {
    try {
      const viewer = stream.admit(token, now - idleMs);
      if (sent > 0) stream.sent(sent, viewer, now - idleMs);
      return viewer === undefined ? 'uncounted' : 'counted';
    } catch (error) {
      if (!(error instanceof KilnError)) throw error;
      if (error.code === 'tooManyConnections') return 'full';
      return stream.hasKicked(token) ? 'kicked' : 'refused';
    }
  });
}

function content(value: unknown, status = 200): PeerResponse {
  return { status, headers: {}, body: Buffer.from(JSON.stringify(value)) };
}
