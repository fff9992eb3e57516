import { createDecipheriv } from 'node:crypto';
import type { Connection } from '../../core/source.ts';
import { connectionOf } from '../../protocols/outbound/dial.ts';
import type { OutboundGuard } from '../../protocols/outbound/guard.ts';
import { httpBody, wholeBody } from '../../protocols/outbound/http-body.ts';
import { httpRequest, type HttpAnswer } from '../../protocols/outbound/http-request.ts';
import { shownUrl } from '../../protocols/outbound/shown.ts';
import { PullError } from '../pull/error.ts';
import { Cookies } from './cookies.ts';
import { parsePlaylist, type MasterPlaylist, type MediaPlaylist, type Resource, type SegmentKey } from './playlist.ts';
import type { Variables } from './variables.ts';

const PLAYLISTS = 'application/vnd.apple.mpegurl, application/x-mpegurl, */*;q=0.1';
const ANY = '*/*';
const MAX_PLAYLIST_BYTES = 4 * 1024 * 1024;
const MAX_INIT_BYTES = 1024 * 1024;
const MAX_SEGMENT_BYTES = 1024 * 1024 * 1024;
const KEY_BYTES = 16;
/** Keys that are kept: packagers change them every few segments. */
const MAX_KEYS = 8;

/** Reads what a stream of HLS consists of, from all servers that its playlists lead to and the guard allows. */
export class HlsServer {
  readonly #guard: OutboundGuard;
  readonly #cookies = new Cookies();
  readonly #keys = new Map<string, Buffer>();
  readonly #signal: AbortSignal;
  /** Latest connection. */
  connection: Connection | undefined;

  /** @param signal ends all requests */
  constructor(guard: OutboundGuard, signal: AbortSignal) {
    this.#guard = guard;
    this.#signal = signal;
  }

  /**
   * @param variables of the multivariant playlist that led to it
   * @throws PullError when it cannot be read
   */
  async playlist(url: URL, variables?: Variables): Promise<MediaPlaylist | MasterPlaylist> {
    const answer = await this.#get(url, PLAYLISTS);
    const text = (await wholeBody(answer, MAX_PLAYLIST_BYTES, this.#guard)).toString();
    return parsePlaylist(text, answer.url, variables);
  }

  /**
   * The bytes of a segment, decrypted, as they come. While none is taken, the server waits.
   * @param sequence of the segment
   * @throws PullError when it cannot be read to its end
   */
  async *resource(
    resource: Resource,
    key: SegmentKey | undefined,
    sequence: number,
  ): AsyncGenerator<Buffer, void, undefined> {
    const secret = key && (await this.#key(key.uri));
    const answer = await this.#get(resource.uri, ANY, resource.range);
    const chunks = httpBody(answer, resource.range?.length ?? MAX_SEGMENT_BYTES, this.#guard);
    if (key === undefined || secret === undefined) return yield* chunks;
    const decipher = createDecipheriv('aes-128-cbc', secret, key.iv ?? sequenceIv(sequence));
    for await (const chunk of chunks) yield decipher.update(chunk);
    try {
      yield decipher.final();
    } catch {
      throw new PullError(`${shownUrl(resource.uri.href)} cannot be decrypted with its key`);
    }
  }

  /** The bytes of an initialization, as of `resource`. @throws PullError when it cannot be read to its end */
  async initialization(map: Resource, key: SegmentKey | undefined, sequence: number): Promise<Buffer> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of this.resource(map, key, sequence)) {
      bytes += chunk.length;
      if (bytes > MAX_INIT_BYTES) throw new PullError(`${shownUrl(map.uri.href)} is no initialization: it is too long`);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  }

  async #key(uri: URL): Promise<Buffer> {
    const known = this.#keys.get(uri.href);
    if (known !== undefined) return known;
    const key = await wholeBody(await this.#get(uri, ANY), KEY_BYTES, this.#guard);
    if (key.length !== KEY_BYTES) throw new PullError(`${shownUrl(uri.href)} is no key of ${KEY_BYTES} bytes`);
    const [oldest] = this.#keys.keys();
    if (oldest !== undefined && this.#keys.size === MAX_KEYS) this.#keys.delete(oldest);
    this.#keys.set(uri.href, key);
    return key;
  }

  async #get(target: URL, accept: string, range?: Resource['range']): Promise<HttpAnswer> {
    const answer = await httpRequest(this.#guard, target, {
      accept,
      signal: this.#signal,
      headersFor: (url) => ({
        'Accept-Encoding': 'identity',
        ...cookieHeader(this.#cookies.header(url)),
        ...(range && { Range: `bytes=${range.offset}-${range.offset + range.length - 1}` }),
      }),
      onAnswer: (url, { headers }) => this.#cookies.take(url, headers['set-cookie'] ?? []),
    });
    const { statusCode, headers } = answer.response;
    const encoding = headers['content-encoding'] ?? 'identity';
    const fault =
      statusCode !== (range === undefined ? 200 : 206)
        ? statusCode === 200
          ? 'it sent the whole instead of a range of bytes'
          : `the server answered with ${statusCode}`
        : encoding === 'identity'
          ? undefined
          : `the server answered with a content encoding that was not asked for: ${encoding}`;
    if (fault !== undefined) {
      answer.socket.destroy();
      throw new PullError(`${shownUrl(target.href)}: ${fault}`);
    }
    this.connection = connectionOf(answer.socket);
    return answer;
  }
}

/** Number of the segment, as an IV (RFC 8216 section 5.2). */
function sequenceIv(sequence: number): Buffer {
  const iv = Buffer.alloc(KEY_BYTES);
  iv.writeBigUInt64BE(BigInt(sequence), 8);
  return iv;
}

function cookieHeader(cookie: string | undefined): { readonly Cookie?: string } {
  return cookie === undefined ? {} : { Cookie: cookie };
}
