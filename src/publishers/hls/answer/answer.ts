import type { Grant } from '../../../access/grant.ts';
import type { HlsPublisherConfig } from '../../../config/model.ts';
import type { Directives } from './directives.ts';
import type { Text } from './text.ts';
import type { SessionTerms } from './token.ts';

/** A piece of media: its parts stand one behind the other. */
export interface Media {
  readonly kind: 'part' | 'segment' | 'init';
  /** `ts`: sound and picture in MPEG-TS. */
  readonly type: 'video' | 'audio' | 'ts';
  readonly body: readonly Buffer[];
  /** Makes the body, where that is too much for one turn: it is asked for behind that. */
  write?(): Promise<void> | undefined;
}

/** What is told to who asks for a file; `starting`: there is nothing to tell yet. */
export type FileAnswer = Media | ChunklistAnswer | typeof STARTING;

/** A chunklist for one request. */
export interface ChunklistAnswer {
  readonly kind: 'chunklist';
  readonly text: Text;
  /**
   * It ends with what the request named, so that any later answer to it may be the same. Otherwise it is the chunklist of
   * this moment, whatever was named.
   */
  readonly asNamed: boolean;
}

/** There is nothing to tell yet. */
export const STARTING = { kind: 'starting' } as const;

/** Registers what is to happen when the client leaves. */
export type OnLeft = (cancel: () => void) => void;

/**
 * Holds the request that an answer is for, until the promise that `wait` makes is settled.
 * @param most so many requests of the client's connection may be held then; few when not given
 * @throws tooManyWaiting
 */
export type Hold = <T>(wait: (onLeft: OnLeft) => Promise<T>, most?: number) => Promise<T>;

/** A player that is counted. */
export interface Viewer {
  /** When its session began, in milliseconds since the epoch. */
  readonly createdTime: number;
  sent(bytes: number, now: number): void;
}

/** A master playlist for one player. */
export interface Master {
  readonly text: Text;
  /** undefined when the player is not counted. */
  readonly viewer: Viewer | undefined;
}

/** What a player asks for a master playlist with. */
export interface MasterRequest {
  /** Name of the playlist's file, without extension. */
  readonly file: string;
  /** Of the player's URL, without `?`. */
  readonly query: string;
  /** False for who asks for no more than the headers, and is not counted. */
  readonly plays: boolean;
  /** Of the children, where the player asked under other names than those of the stream. */
  readonly base?: string | undefined;
  /** Its openings are those of the grant. */
  readonly terms: SessionTerms;
  /** Is held on to, or handed over, with the player's session: who plays ends it only if there is no master playlist. */
  readonly grant: Grant;
  /** Aborted when the player leaves: it is not waited for, nor counted, then. */
  readonly signal: AbortSignal;
  /** When the request came, in milliseconds since the epoch. */
  readonly since: number;
  readonly hold: Hold;
}

/** HLS of one output stream, wherever it is packaged. What is there is answered at once. */
export interface PlayedStream {
  readonly config: HlsPublisherConfig;
  /**
   * A master playlist for one player, which is counted from then on. The request is held until there is something of each
   * rendition; undefined when there was nothing to play by the end of that.
   * @throws fileNotFound, streamNotFound, tooManyConnections, tooManyWaiting, playlistSessionRefused, sessionExists, clientGone
   */
  master(asked: MasterRequest): Master | undefined | Promise<Master | undefined>;
  /**
   * The player that a token was given to; undefined when it is not counted.
   * @throws playlistSessionRefused, playlistSessionOver, tooManyConnections
   */
  admit(token: string): Viewer | undefined | Promise<Viewer | undefined>;
  /**
   * @param viewer who asks; undefined when it is not counted
   * @throws fileNotFound, playlistDirective, playlistOverdue, tooManyWaiting, streamInterrupted
   */
  file(name: string, directives: Directives, hold: Hold, viewer?: Viewer): FileAnswer | Promise<FileAnswer>;
  /** Counts what went to a player, or to somebody who is not counted. */
  sent(bytes: number, viewer: Viewer | undefined): void;
}
