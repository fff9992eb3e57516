import type { Static } from 'typebox';
import type { NodeIdentity } from '#cluster';
import { KilnError, kilnError } from '../../../errors.ts';
import type { WithBytes } from '../../../peers/peer-call.ts';
import type { PeerCalls } from '../../../peers/peer-calls.ts';
import type { HlsForm } from '../package/hls-form.ts';
import type { Media, Viewer } from '../answer/played-stream.ts';
import { termsOf } from '../answer/token.ts';
import { holdFor } from '../blocking-reload/held-requests.ts';
import type { OwnStream } from '../local/own-streams.ts';
import type { PackagedStream } from '../local/packaged-stream.ts';
import type { PackagedList } from '../package/package.ts';
import { markOf } from '../blocking-reload/chunklist-position.ts';
import type { FeedSource } from './feed-session.ts';
import { AwayError } from './link.ts';
import { pastState } from './past.ts';
import type { WantedChunklist } from './rendition.ts';
import {
  callsOf,
  type ChunklistState,
  type MasterState,
  type Newcomer,
  type PastState,
  type PlaylistCalls,
  type Report,
  type StreamPath,
  type Verdict,
} from '../sessions/wire.ts';

/** Time for which a joined segment is kept: other nodes ask for it when it has just come. */
const JOINED_MS = 10_000;
const NO_DIRECTIVES = { msn: undefined, part: undefined, skip: false, legacy: false, rewinds: false };

/**
 * Finds a stream of this node.
 * @param query of a request for a master playlist
 * @throws sessionExists for the name of a session that a viewer elsewhere has
 */
export type StreamHere = (
  asked: StreamPath,
  query?: URLSearchParams,
) => OwnStream | undefined | Promise<OwnStream | undefined>;

/** Counter of the players that this node admitted to a stream. */
export interface PlayerCount {
  /** @throws as PlayedViewers.admit */
  admitHere(token: string, seen: number): Viewer | undefined;
  hasKicked(token: string): boolean;
  /** Counts bytes that the reporting node has sent. */
  sentElsewhere(bytes: number, viewer: Viewer | undefined, now: number): void;
}

/**
 * Files of a stream that child nodes get from this node.
 * @throws AwayError where the owner itself may know more; errors of the owner
 */
export interface Relayed {
  /** Waits for one, for `holdMs` at most. */
  readonly master: (file: string, holdMs: number) => Promise<MasterState | undefined>;
  /** Waits for a change from `wanted`, for `holdMs` at most. */
  readonly chunklist: (file: string, wanted: WantedChunklist, holdMs: number) => Promise<ChunklistState | undefined>;
  /** @param fetches whether a file that is not cached is fetched; fileNotFound otherwise */
  readonly media: (file: string, fetches: boolean) => Promise<Media>;
  /** Segments that players rewind to, from a number on; undefined where there are none. */
  readonly past: (file: string, from: number, until?: number) => Promise<WithBytes<PastState> | undefined>;
}

interface RelayedStream {
  /**
   * @param owner of the stream, as the asking node knows it, by incarnation
   * @param viewers of that node, if it reports them
   * @throws AwayError
   */
  passOn(from: NodeIdentity, owner: string, viewers?: number): Relayed;
}

export interface StreamsHere {
  readonly own: StreamHere;
  /** Finds a stream of any node if it is played here. */
  readonly played: (asked: StreamPath) => PlayerCount | undefined;
  readonly remote: (asked: StreamPath) => Promise<RelayedStream | undefined>;
  /**
   * Tests whether a node should get a stream of this node from another one.
   * @param watching number of nodes that get it from this one
   */
  readonly isAtCapacity: (asked: StreamPath, from: NodeIdentity, watching: number) => boolean;
}

/** Answers other nodes about the streams of this node and those that it relays. @returns source of feeds */
export function answerNodes(
  form: HlsForm,
  calls: PeerCalls,
  { own, played, remote, isAtCapacity }: StreamsHere,
): FeedSource {
  const demand = <S>(stream: S | undefined, asked: StreamPath): S => {
    if (stream === undefined) throw kilnError('streamNotFound', `${asked.app}/${asked.stream}`);
    return stream;
  };
  const found = async (asked: StreamPath, query?: URLSearchParams): Promise<OwnStream> =>
    demand(await own(asked, query), asked);
  const known = callsOf(form);
  const relayed = async (asked: StreamPath, from: NodeIdentity, owner: string, viewers?: number): Promise<Relayed> =>
    demand(await remote(asked), asked).passOn(from, owner, viewers);
  calls.answer(known.master, async (asked, from) => {
    const { file, session, start, relayOf, holdMs = 0 } = asked;
    if (relayOf !== undefined)
      return (await ofRelay(relayed(asked, from, relayOf).then(({ master }) => master(file, holdMs)))) ?? null;
    const own = await found(asked, new URLSearchParams(session && { session: session.id }));
    if (start !== undefined) await own.stream.settled();
    const state = master(own, file, session, start) ?? (await heldMaster(own, asked, holdMs));
    if (state !== null) own.viewers.watchedBy(from);
    return state;
  });
  const source: FeedSource = {
    chunklist: async (asked, from) => {
      const { file, relayOf, viewers, holdMs = 0 } = asked;
      if (relayOf !== undefined) {
        const state = relayed(asked, from, relayOf, viewers).then(({ chunklist }) => chunklist(file, asked, holdMs));
        return (await ofRelay(state)) ?? null;
      }
      const { stream, viewers: here } = await found(asked);
      const rendition = stream.rendition(file);
      if (rendition === undefined) throw kilnError('fileNotFound');
      here.watchedBy(from, viewers);
      const state = await chunklist(stream, rendition, asked);
      if (state === null || !isAtCapacity(asked, from, here.watching)) return state;
      here.dismiss(from);
      return { ...state, atCapacity: true };
    },
    media: async (asked, from) => {
      const { file, relayOf, holdMs = 0 } = asked;
      if (relayOf !== undefined)
        return withBytes(await ofRelay(relayed(asked, from, relayOf).then(({ media }) => media(file, holdMs > 0))));
      const { stream, viewers } = await found(asked);
      const answer = await media(form, stream, asked);
      viewers.watchedBy(from);
      return answer;
    },
  };
  calls.answer(known.chunklist, source.chunklist);
  calls.answerBytes(known.media, source.media);
  calls.answerBytes(known.past, async (asked, from) => {
    const { file, relayOf, from: first, until } = asked;
    if (relayOf !== undefined)
      return knownPast(await ofRelay(relayed(asked, from, relayOf).then(({ past }) => past(file, first, until))));
    const { stream } = await found(asked);
    await stream.settled();
    const shelf = stream.past(file);
    return knownPast(
      shelf && pastState(stream.run, shelf, { from: first, until }, stream.longestPast, shelf.past.fills),
    );
  });
  calls.answer(known.report, async (asked) => ({ players: count((await found(asked)).viewers, asked.report) }));
  calls.answer(known.visits, (asked) => ({ players: count(demand(played(asked), asked), asked.report) }));
  calls.answer(known.kicked, async (asked) => [...(await found(asked)).viewers.kicked]);
  calls.answer(known.sessions, async (asked) => {
    (await found(asked)).viewers.takeOver(asked.sessions);
    return null;
  });
  return source;
}

/** @throws fileNotFound where there is none */
function knownPast(state: WithBytes<PastState> | undefined): WithBytes<PastState> {
  if (state === undefined) throw kilnError('fileNotFound');
  return state;
}

/** @throws ownerUnreachable where the asking node should ask the owner itself */
function ofRelay<T>(promise: Promise<T>): Promise<T> {
  return promise.catch((error: unknown) => {
    throw error instanceof AwayError ? kilnError('ownerUnreachable') : error;
  });
}

function master(
  { stream, viewers }: OwnStream,
  file: string,
  newcomer: Newcomer | undefined,
  start?: number,
): MasterState | null {
  const template = viewers.template(file, start);
  if (template === undefined) return null;
  const state = { run: stream.run, template: template.text };
  if (newcomer === undefined) return state;
  const { id, plays, guarded, vhost, grant } = newcomer;
  const token = viewers.issue(id, termsOf(grant, guarded, vhost));
  if (plays) viewers.beginAdopted(token, grant);
  return { ...state, token };
}

/** Waits up to `holdMs` for a stream that has nothing to play yet. */
async function heldMaster(
  own: OwnStream,
  { file, session, start }: Static<PlaylistCalls['master']['request']>,
  holdMs: number,
): Promise<MasterState | null> {
  if (holdMs === 0) return null;
  await holdFor(holdMs)((onLeft) => own.stream.whenStarted(file, onLeft, Date.now()));
  return master(own, file, session, start);
}

async function chunklist(
  stream: PackagedStream,
  rendition: PackagedList,
  { app, stream: name, file, after, forms, holdMs = 0 }: Static<PlaylistCalls['chunklist']['request']>,
): Promise<ChunklistState | null> {
  const changed = (): boolean => rendition.position !== undefined && markOf(rendition.position) !== after;
  if (holdMs > 0 && !changed() && (rendition.position !== undefined || rendition.continues)) {
    await rendition.waiters.wait(changed, holdMs, () => {});
  }
  await stream.settled();
  if (stream.closed) throw kilnError('streamNotFound', `${app}/${name}`);
  if (stream.rendition(file) !== rendition) throw kilnError('fileNotFound');
  const { position } = rendition;
  if (position === undefined && rendition.continues) throw kilnError('streamInterrupted');
  if (position === undefined) return null;
  const texts = forms.map((form) => [form, rendition.text(form, false).plain.toString()]);
  const {
    run,
    package: { edition, interrupted, targetDuration },
  } = stream;
  return { run, edition, interrupted, targetDuration, position, texts: Object.fromEntries(texts) };
}

async function media(
  form: HlsForm,
  stream: PackagedStream,
  { file, holdMs = 0 }: Static<PlaylistCalls['media']['request']>,
): Promise<WithBytes<Static<PlaylistCalls['media']['answer']>>> {
  const found =
    form.mediaKind(file) !== undefined ? await stream.file(file, NO_DIRECTIVES, holdFor(holdMs)) : undefined;
  if (found === undefined || found.kind === 'starting' || found.kind === 'chunklist') throw kilnError('fileNotFound');
  return withBytes(found);
}

function withBytes({ kind, type, body }: Media): WithBytes<Static<PlaylistCalls['media']['answer']>> {
  return { answer: { kind, type }, bytes: joined(body) };
}

const known = new WeakMap<readonly Buffer[], Buffer>();

/** Joins the parts of a file, once for all nodes that ask at about the same time. */
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

function count(stream: PlayerCount, { players, bytes }: Report): Verdict[] {
  const now = Date.now();
  if (bytes > 0) stream.sentElsewhere(bytes, undefined, now);
  return players.map(([token, sent, idleMs]) => {
    try {
      const viewer = stream.admitHere(token, now - idleMs);
      if (sent > 0) stream.sentElsewhere(sent, viewer, now - idleMs);
      return viewer === undefined ? 'uncounted' : 'counted';
    } catch (error) {
      if (!(error instanceof KilnError)) throw error;
      if (error.code === 'tooManyConnections') return 'full';
      return stream.hasKicked(token) ? 'kicked' : 'refused';
    }
  });
}
