import type { PeerRequest, PeerResponse } from '#cluster';
import { KilnError, kilnError } from '../../../errors.ts';
import type { PeerCalls } from '../../../origins/peer-calls.ts';
import { holdAny } from '../hold.ts';
import { markOf } from '../position.ts';
import type { LlhlsStream } from '../stream.ts';
import {
  ERROR_HEADER, FORMS, HELD_MS, KIND_HEADER, PREFIX, read, readPath, Report, TYPE_HEADER, type Asked, type ChunklistState,
  type MasterState, type StreamPath, type Verdict,
} from './wire.ts';

const NO_DIRECTIVES = { msn: undefined, part: undefined, skip: false, legacy: false };

export type StreamHere = (path: StreamPath) => LlhlsStream | undefined;

/** Answers other nodes for the streams of this one. */
export function answerNodes(calls: PeerCalls, find: StreamHere): void {
  calls.add(PREFIX, async (request) => {
    try {
      return await answer(find, request);
    } catch (error) {
      if (!(error instanceof KilnError)) throw error;
      return { status: error.status, headers: { [ERROR_HEADER]: error.code }, body: Buffer.from(error.message) };
    }
  });
}

async function answer(find: StreamHere, { path, body }: PeerRequest): Promise<PeerResponse> {
  const asked = readPath(path);
  const stream = find(asked);
  if (stream === undefined) throw kilnError('streamNotFound', `${asked.app}/${asked.stream}`);
  switch (asked.what) {
    case 'master':
      return master(stream, asked);
    case 'chunklist':
      return await chunklist(stream, asked);
    case 'media':
      return await media(stream, asked.file);
    case 'sessions':
      return content({ players: count(stream, read(Report, body)) });
    default:
      throw kilnError('fileNotFound');
  }
}

function master(stream: LlhlsStream, { file, query }: Asked): PeerResponse {
  const template = stream.template(file);
  if (template === undefined) return content(null, 201);
  const session = query.get('session');
  const state: MasterState = {
    run: stream.run, template: template.text, ...(session !== null && { token: stream.issue(session) }),
  };
  return content(state);
}

/** Tells of a chunklist as soon as it is not where the query's `after` says, waiting for that as long as its `hold`. */
async function chunklist(stream: LlhlsStream, { app, stream: name, file, query }: Asked): Promise<PeerResponse> {
  const rendition = stream.rendition(file);
  if (rendition === undefined) throw kilnError('fileNotFound');
  const after = query.get('after');
  const changed = (): boolean => rendition.position !== undefined && markOf(rendition.position) !== after;
  const hold = Math.min(Number(query.get('hold')), HELD_MS);
  if (hold > 0 && !changed() && (rendition.position !== undefined || rendition.continues)) {
    await rendition.waiters.wait(changed, hold, () => {});
  }
  if (stream.closed) throw kilnError('streamNotFound', `${app}/${name}`);
  if (stream.rendition(file) !== rendition) throw kilnError('fileNotFound');
  const { position } = rendition;
  if (position === undefined && rendition.continues) throw kilnError('streamInterrupted');
  if (position === undefined) return content(null, 201);
  const forms = query.get('forms')?.split(',') ?? [];
  const texts = FORMS.filter((form) => forms.includes(form)).map((form) => [form, rendition.text(form).plain.toString()]);
  const { run, renditions: { edition, interrupted, targetDuration } } = stream;
  const state: ChunklistState = { run, edition, interrupted, targetDuration, position, texts: Object.fromEntries(texts) };
  return content(state);
}

async function media(stream: LlhlsStream, file: string): Promise<PeerResponse> {
  const found = file.endsWith('.m4s') ? await stream.file(file, NO_DIRECTIVES, holdAny) : undefined;
  if (found === undefined || found.kind === 'starting' || found.kind === 'chunklist') throw kilnError('fileNotFound');
  const { kind, type, body } = found;
  const [only] = body;
  return {
    status: 200,
    headers: { [KIND_HEADER]: kind, [TYPE_HEADER]: type },
    body: body.length === 1 && only !== undefined ? only : Buffer.concat(body),
  };
}

/** Counts the players of another node. */
function count(stream: LlhlsStream, { players, bytes }: Report): Verdict[] {
  if (bytes > 0) stream.sent(bytes, undefined);
  const now = Date.now();
  return players.map(([token, sent, idleMs]) => {
    try {
      const viewer = stream.admit(token, now - idleMs);
      if (sent > 0) stream.sent(sent, viewer, now - idleMs);
      return viewer === undefined ? 'uncounted' : 'counted';
    } catch (error) {
      if (!(error instanceof KilnError)) throw error;
      return error.code === 'tooManyConnections' ? 'full' : 'refused';
    }
  });
}

function content(value: unknown, status = 200): PeerResponse {
  return { status, headers: {}, body: Buffer.from(JSON.stringify(value)) };
}
