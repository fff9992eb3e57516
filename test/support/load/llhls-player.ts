import { FrameLog } from './frame-log.ts';
import { HttpConnection } from './http-connection.ts';
import { lastStamp, monotonic, stampedFrames } from './stamp.ts';
import { inPlace, urisOf } from '../hls/playlist-uris.ts';
import { until } from '../time/until.ts';

export interface LlhlsPlayerOptions {
  readonly port: number;
  /** Path of the master playlist. */
  readonly master: string;
  /** Ask for a part as soon as its preload hint tells of it, instead of when it is listed. */
  readonly hints: boolean;
}

interface Chunklist {
  /** URIs of the parts behind the last whole segment's start, in order. */
  readonly parts: readonly string[];
  readonly hint: string | undefined;
  /** What to ask for next. */
  readonly msn: number;
  readonly part: number;
}

/** Plays LL-HLS as a player does at the live edge: blocking reloads and parts, of the picture and of the sound. */
export class LlhlsPlayer {
  readonly frames = new FrameLog();
  /** Milliseconds between a part's last frame and the arrival of the part. */
  delays: number[] = [];
  requests = 0;
  /** Parts that it asked for by a preload hint, and those of them that never came. */
  hinted = 0;
  missed = 0;
  /** What ended a rendition before the player was closed. */
  readonly failures: string[] = [];
  /** When the first part with picture was there, in milliseconds of the stamps' clock. */
  firstPart = 0;
  readonly #options: LlhlsPlayerOptions;
  readonly #connections: HttpConnection[] = [];
  #closed = false;

  private constructor(options: LlhlsPlayerOptions) {
    this.#options = options;
  }

  /** Begins to play as soon as the stream is there. */
  static async start(options: LlhlsPlayerOptions): Promise<LlhlsPlayer> {
    const player = new LlhlsPlayer(options);
    const connection = player.#connect();
    const { body } = await until('the master playlist', async () => {
      const answer = await connection.get(options.master);
      return answer.status === 200 && answer;
    });
    for (const uri of urisOf(body.toString(), options.master)) {
      player.#play(uri).catch((error: Error) => {
        if (!player.#closed) player.failures.push(error.message);
      });
    }
    return player;
  }

  close(): void {
    this.#closed = true;
    for (const connection of this.#connections) connection.close();
  }

  async #play(chunklist: string): Promise<void> {
    const playlists = this.#connect();
    const media = this.#connect();
    const mark = chunklist.includes('?') ? '&' : '?';
    let list = parseChunklist(await this.#text(playlists, chunklist));
    let newest = list.parts.at(-1);
    if (newest !== undefined) await this.#part(media, inPlace(newest, chunklist));
    let hinted = list.hint;
    while (!this.#closed) {
      const early = this.#options.hints && hinted !== undefined;
      const ahead = early ? this.#part(media, inPlace(hinted as string, chunklist)) : undefined;
      // what fails meanwhile is told where it is awaited
      ahead?.catch(() => {});
      const next = `_HLS_msn=${list.msn}&_HLS_part=${list.part}`;
      list = parseChunklist(await this.#text(playlists, `${chunklist}${mark}${next}`));
      const came = await ahead;
      if (early) this.hinted++;
      if (came === false) this.missed++;
      const from = newest === undefined ? 0 : list.parts.indexOf(newest) + 1;
      for (const uri of list.parts.slice(from)) {
        if (!came || uri !== hinted) await this.#part(media, inPlace(uri, chunklist));
      }
      newest = list.parts.at(-1) ?? newest;
      hinted = list.hint;
    }
  }

  /** @returns whether it exists */
  async #part(connection: HttpConnection, path: string): Promise<boolean> {
    this.requests++;
    const { status, body } = await connection.get(path);
    if (status === 404) return false;
    if (status !== 200) throw new Error(failure(status, path, body));
    const now = monotonic();
    const stamp = lastStamp(body);
    if (stamp === undefined) return true;
    this.firstPart ||= now;
    this.delays.push(now - stamp.time);
    for (const frame of stampedFrames(body)) this.frames.add(frame);
    return true;
  }

  async #text(connection: HttpConnection, path: string): Promise<string> {
    this.requests++;
    const { status, body } = await connection.get(path);
    if (status !== 200) throw new Error(failure(status, path, body));
    return body.toString('latin1');
  }

  #connect(): HttpConnection {
    const connection = new HttpConnection(this.#options.port);
    this.#connections.push(connection);
    return connection;
  }
}

/** Reads what a player at the live edge needs (RFC 8216bis 4.4.4). */
export function parseChunklist(text: string): Chunklist {
  const segments = text.split(/^#EXTINF:.*\n/m).length - 1;
  const open = text.slice(Math.max(0, text.lastIndexOf('#EXTINF:')));
  const uris = (part: string) => [...part.matchAll(/^#EXT-X-PART:.*?URI="([^"]+)"/gm)].map(([, uri]) => uri ?? '');
  return {
    parts: uris(text),
    hint: /^#EXT-X-PRELOAD-HINT:TYPE=PART,URI="([^"]+)"/m.exec(text)?.[1],
    msn: Number(/^#EXT-X-MEDIA-SEQUENCE:(\d+)/m.exec(text)?.[1] ?? 0) + segments,
    part: uris(open).length,
  };
}

function failure(status: number, path: string, body: Buffer): string {
  return `${status} for ${path}: ${body.toString('latin1').slice(0, 200)}`;
}
