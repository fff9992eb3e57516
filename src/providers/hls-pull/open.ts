import { pause } from '../../lib/pause.ts';
import type { OutboundGuard } from '../../protocols/outbound/guard.ts';
import type { LocalClock } from '../intake/local-clock.ts';
import { PullError } from '../pull/error.ts';
import type { SourceOptions } from '../pull/source.ts';
import { endOf, startOf } from './follower.ts';
import type { MediaPlaylist, Segment } from './playlist.ts';
import { HlsServer } from './server.ts';
import { HlsSource } from './source.ts';
import { ranked } from './variants.ts';

/** Variants that are tried. */
const MAX_TRIES = 4;
/** Longest wait for a playlist that has nothing new. */
const MAX_WAIT_MS = 10_000;

interface Found {
  readonly uri: URL;
  readonly playlist: MediaPlaylist;
}

/** Opens streams of HLS (RFC 8216), whose segments are MPEG-TS or fragmented MP4, from servers that the guard allows. */
export class HlsPulls {
  readonly #guard: OutboundGuard;
  /** Last segment of each URL that a stream has taken, after which it continues. */
  readonly #last = new WeakMap<LocalClock, Map<string, Segment>>();

  constructor(guard: OutboundGuard) {
    this.#guard = guard;
  }

  /** @throws PullError when there is no stream that can be pulled */
  async open(url: URL, options: SourceOptions): Promise<HlsSource> {
    const stop = new AbortController();
    const server = new HlsServer(this.#guard, stop.signal);
    const last = this.#lastOf(options.clock);
    const after = last.get(url.href);
    let { uri, playlist } = await find(server, url);
    if (!hasMore(playlist, after) && !playlist.isEnded) {
      await pause(Math.min(MAX_WAIT_MS, playlist.target * 1000), stop.signal);
      ({ uri, playlist } = await find(server, url));
    }
    if (!hasMore(playlist, after))
      throw new PullError(playlist.isEnded ? 'the playlist has ended' : 'the playlist does not go on');
    const onSegment = (segment: Segment): void => void last.set(url.href, segment);
    return new HlsSource({ ...options, server, uri, playlist, after, stop, onSegment });
  }

  #lastOf(clock: LocalClock): Map<string, Segment> {
    const known = this.#last.get(clock) ?? new Map<string, Segment>();
    this.#last.set(clock, known);
    return known;
  }
}

async function find(server: HlsServer, url: URL): Promise<Found> {
  const playlist = await server.playlist(url);
  if (playlist.kind === 'media') return { uri: url, playlist };
  const variants = ranked(playlist.variants).slice(0, MAX_TRIES);
  const failures: unknown[] = [];
  for (const { uri, audio } of variants) {
    try {
      if (audio !== undefined) throw new PullError('its audio is in playlists of its own, which are not pulled');
      const media = await server.playlist(uri);
      if (media.kind === 'master') throw new PullError('its variants are no playlists of segments');
      return { uri, playlist: media };
    } catch (error) {
      failures.push(error);
    }
  }
  throw failures[0];
}

function hasMore(playlist: MediaPlaylist, after: Segment | undefined): boolean {
  return startOf(playlist, after) < (endOf(playlist) ?? 0);
}
