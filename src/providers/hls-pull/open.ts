import { pause } from '../../lib/pause.ts';
import type { OutboundGuard } from '../../protocols/outbound/guard.ts';
import type { LocalClock } from '../intake/local-clock.ts';
import { PullError } from '../pull/error.ts';
import type { SourceOptions } from '../pull/source.ts';
import { endOf, startOf } from './follower.ts';
import { matching } from './matching.ts';
import type { MediaPlaylist, Segment } from './playlist.ts';
import { HlsServer } from './server.ts';
import { HlsSource, type HlsSourceOptions } from './source.ts';
import type { Variables } from './variables.ts';
import { ranked } from './variants.ts';

/** Variants that are tried. */
const MAX_TRIES = 4;
/** Longest wait for a playlist that has nothing new. */
const MAX_WAIT_MS = 10_000;

interface Loaded {
  readonly uri: URL;
  readonly playlist: MediaPlaylist;
  readonly variables: Variables | undefined;
}

interface Found {
  readonly main: Loaded;
  /** Audio that is not in the first one. */
  readonly audio: Loaded | undefined;
}

/** Opens streams of HLS (RFC 8216), whose segments are MPEG-TS, fragmented MP4 or packed audio, from servers that the guard allows. */
export class HlsPulls {
  readonly #guard: OutboundGuard;
  /** Last segment of each URL that a stream has taken, after which it continues. */
  readonly #last = new WeakMap<LocalClock, Map<string, Segment>>();

  constructor(guard: OutboundGuard) {
    this.#guard = guard;
  }

  /** @throws PullError when there is no stream that can be pulled, or the signal aborts */
  async open(url: URL, options: SourceOptions): Promise<HlsSource> {
    const stop = new AbortController();
    const signal = AbortSignal.any([stop.signal, options.signal]);
    const server = new HlsServer(this.#guard, signal);
    const last = this.#lastOf(options.clock);
    const after = last.get(url.href);
    let found = await find(server, url);
    if (!hasMore(found, after) && !found.main.playlist.isEnded) {
      await pause(Math.min(MAX_WAIT_MS, found.main.playlist.target * 1000), signal);
      found = await find(server, url);
    }
    if (!hasMore(found, after))
      throw new PullError(found.main.playlist.isEnded ? 'the playlist has ended' : 'the playlist does not go on');
    const onSegment = (segment: Segment): void => void last.set(url.href, segment);
    return new HlsSource({ ...options, server, playlists: chosen(found, after), stop, onSegment });
  }

  #lastOf(clock: LocalClock): Map<string, Segment> {
    const known = this.#last.get(clock) ?? new Map<string, Segment>();
    this.#last.set(clock, known);
    return known;
  }
}

async function find(server: HlsServer, url: URL): Promise<Found> {
  const playlist = await server.playlist(url);
  if (playlist.kind === 'media') return { main: { uri: url, playlist, variables: undefined }, audio: undefined };
  const variants = ranked(playlist.variants).slice(0, MAX_TRIES);
  const failures: unknown[] = [];
  const load = async (uri: URL): Promise<Loaded> => {
    const media = await server.playlist(uri, playlist.variables);
    if (media.kind === 'master') throw new PullError('its variants are no playlists of segments');
    return { uri, playlist: media, variables: playlist.variables };
  };
  for (const { uri, audio } of variants) {
    try {
      return { main: await load(uri), audio: audio && (await load(audio)) };
    } catch (error) {
      failures.push(error);
    }
  }
  throw failures[0];
}

/** Chooses the playlists that are read, with where they begin. */
function chosen({ main, audio }: Found, after: Segment | undefined): HlsSourceOptions['playlists'] {
  const from = startOf(main.playlist, after);
  if (audio === undefined) return [{ ...main, from, wanted: undefined }];
  return [
    { ...main, from, wanted: 'video' },
    { ...audio, from: matching(audio.playlist, main.playlist, from), wanted: 'audio' },
  ];
}

function hasMore({ main: { playlist } }: Found, after: Segment | undefined): boolean {
  return startOf(playlist, after) < (endOf(playlist) ?? 0);
}
