import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { audioTagHead, videoTagHead } from '../../containers/flv/tag-head.ts';
import type { Packet } from '../../core/packet.ts';
import { toSeconds } from '../../core/timebase.ts';
import { isMedia, sameFormat, type MediaTrack, type Track } from '../../core/track.ts';
import { dial } from '../../protocols/outbound/dial.ts';
import type { OutboundGuard } from '../../protocols/outbound/guard.ts';
import { TcpSender } from '../../protocols/outbound/tcp-sender.ts';
import { ClientConnection } from '../../protocols/rtmp/client-connection.ts';
import { RtmpError } from '../../protocols/rtmp/error.ts';
import { appOf, type Destination } from './destination.ts';
import { PushError } from './error.ts';
import { configTag, flvObjection, FOUR_CCS, metadataOf } from './flv-format.ts';
import type { OpenSink, Sink, SinkOptions } from './sink.ts';

/** Pushes over RTMP and RTMPS, as far as destinations may be reached. */
export function rtmpSink(guard: OutboundGuard): OpenSink {
  return async (destination, options) => {
    const { host, port, scheme } = destination;
    const plain = await dial(guard, host, port, options.connectMs);
    plain.setKeepAlive(true);
    const socket = scheme === 'rtmps' ? connectTls({ socket: plain, host, servername: serverName(host) }) : plain;
    // TLS tells of its own failures, too
    if (socket !== plain) plain.on('error', () => {});
    const sink = new RtmpSink(socket, destination, options);
    return await sink.published;
  };
}

/** One stream published at an RTMP server: one video and one audio track at most. */
class RtmpSink implements Sink {
  readonly isSingle = true;
  readonly takesBursts = true;
  /** Resolves when the server takes the stream. */
  readonly published: Promise<Sink>;
  readonly #options: SinkOptions;
  readonly #streamKey: string;
  readonly #sender: TcpSender;
  readonly #wire: ClientConnection;
  readonly #start = Promise.withResolvers<Sink>();
  #isPublished = false;
  #hasRoom = true;
  /** What was told of each track. */
  readonly #told = new Map<number, Track>();
  /** Decode time of the first packet, in seconds: the stream begins at 0. */
  #begin: number | undefined;
  /** Milliseconds, of the last message. */
  #time = 0;
  readonly #onAbort = (): void => this.#fail('the connection is not wanted any more');

  constructor(socket: Socket, { url, streamKey }: Destination, options: SinkOptions) {
    this.#options = options;
    this.#streamKey = streamKey;
    this.published = this.#start.promise;
    this.#sender = new TcpSender(socket, options.sendMs, {
      writable: () => {
        this.#hasRoom = true;
        options.writable();
      },
      failed: (reason) => this.#fail(reason),
    });
    const app = appOf(url);
    const target = { app, tcUrl: `${url.protocol}//${url.host}/${app}`, name: streamKey, fourCcs: FOUR_CCS };
    const write = (pieces: readonly Buffer[]): void => {
      this.#hasRoom = this.#sender.send(pieces);
    };
    this.#wire = new ClientConnection(target, write, {
      published: () => this.#onPublished(),
      ended: (reason) => this.#fail(reason),
    });
    socket.on('data', (data: Buffer) => this.#receive(data));
    options.signal.addEventListener('abort', this.#onAbort, { once: true });
    if (options.signal.aborted) this.#onAbort();
    else this.#wire.open();
  }

  get sentBytes(): number {
    return this.#sender.sentBytes;
  }

  objection(track: Track): string | undefined {
    return flvObjection(track, (fourCc) => this.#wire.takes(fourCc));
  }

  setTracks(tracks: readonly Track[]): void {
    this.#told.clear();
    this.#wire.metadata(metadataOf(tracks));
    for (const track of tracks) if (isMedia(track)) this.#tell(track);
  }

  write({ track, dts, pts, key, data }: Packet): boolean {
    if (!isMedia(track)) return this.#hasRoom;
    const at = toSeconds(dts, track.timebase);
    this.#begin ??= at;
    const time = Math.max(0, Math.round((at - this.#begin) * 1000));
    this.#time = time;
    const known = this.#told.get(track.id);
    if (known !== track) {
      if (known === undefined || !sameFormat(known, track)) this.#tell(track);
      this.#told.set(track.id, track);
    }
    if (track.type === 'audio') {
      this.#wire.audio(time, audioTagHead(track.codec, 'frame'), data);
    } else {
      const later = Math.round(toSeconds(pts - dts, track.timebase) * 1000);
      this.#wire.video(time, videoTagHead(track.codec, 'frame', key, later), data);
    }
    return this.#hasRoom;
  }

  finish(): void {
    this.#options.signal.removeEventListener('abort', this.#onAbort);
    this.#wire.unpublish();
    this.#sender.finish();
  }

  close(): void {
    this.#options.signal.removeEventListener('abort', this.#onAbort);
    this.#sender.close();
  }

  #tell(track: MediaTrack): void {
    const time = this.#time;
    const body = configTag(track);
    this.#told.set(track.id, track);
    if (track.type === 'audio') this.#wire.audio(time, ...body);
    else this.#wire.video(time, ...body);
  }

  #receive(data: Buffer): void {
    try {
      this.#wire.receive(data);
    } catch (error) {
      if (!(error instanceof RtmpError)) throw error;
      this.#fail(error.message);
    }
  }

  #onPublished(): void {
    this.#isPublished = true;
    this.#start.resolve(this);
  }

  #fail(reason: string): void {
    this.close();
    // servers quote what they were asked for
    const shown = this.#streamKey === '' ? reason : reason.replaceAll(this.#streamKey, '...');
    if (this.#isPublished) this.#options.failed(shown);
    else this.#start.reject(new PushError(shown));
  }
}

/** TLS names no addresses (RFC 6066 section 3). */
function serverName(host: string): string {
  return /^[\d.]+$|:/.test(host) ? '' : host;
}
