import type { Socket } from 'node:net';
import { AUDIO_FOUR_CC } from '../../containers/flv/audio.ts';
import { VIDEO_FOUR_CC } from '../../containers/flv/video.ts';
import type { Connection } from '../../core/source.ts';
import { endedBy } from '../../lib/ended-by.ts';
import { Watchdog } from '../../lib/watchdog.ts';
import { FaultLog } from '../../log/log.ts';
import { connectionOf, dial } from '../../protocols/outbound/dial.ts';
import { dialTls } from '../../protocols/outbound/dial-tls.ts';
import { cutsCredentials, FRAGMENT_FAULT } from '../../protocols/outbound/fragment.ts';
import type { OutboundGuard } from '../../protocols/outbound/guard.ts';
import { shownUrl } from '../../protocols/outbound/shown.ts';
import { RtmpError } from '../../protocols/rtmp/error.ts';
import { parsePlayUrl, type PlayUrl } from '../../protocols/rtmp/play-url.ts';
import { PlayingClient } from '../../protocols/rtmp/playing-client.ts';
import { authenticated, type Attempt } from '../../protocols/rtmp/authenticated.ts';
import { PullError } from '../pull/error.ts';
import type { OpenSource, PullSource, SourceOptions, SourceSink } from '../pull/source.ts';
import { trackSink } from '../pull/track-sink.ts';
import { RtmpIngest } from '../rtmp/ingest.ts';

/** How long a server may take until it begins the stream, from the accepted connection on. */
const START_MS = 10_000;
/** Wait for the first key frame of video: not every server begins with one. */
const VIDEO_WAIT_MS = 5000;
const FOUR_CCS = { video: Object.keys(VIDEO_FOUR_CC), audio: Object.keys(AUDIO_FOUR_CC) };

/** Plays streams of RTMP and RTMPS servers that the guard allows. A server's certificate is verified. */
export function rtmpSource(guard: OutboundGuard): OpenSource {
  return async (target, options) => {
    const url = parsePlayUrl(target);
    if (url === undefined) {
      const why = cutsCredentials(target) ? ` (${FRAGMENT_FAULT})` : '';
      throw new PullError(`not an RTMP URL of an application and a stream: ${shownUrl(target)}${why}`);
    }
    const { secure, host, port, app, credentials } = url;
    try {
      return await authenticated(app, credentials, async (next) => {
        const socket = await (secure ? dialTls : dial)(guard, host, port, { signal: options.signal });
        return new RtmpSource(socket, next, url, options);
      });
    } catch (error) {
      throw error instanceof RtmpError ? new PullError(error.message) : error;
    }
  };
}

type Media = (client: SourceMedia) => void;
type SourceMedia = Pick<RtmpIngest, 'video' | 'audio' | 'metadata'>;

/** One stream of an RTMP server. */
class RtmpSource implements PullSource, Attempt<PullSource> {
  /** Resolves when the server begins the stream. */
  readonly result: Promise<PullSource>;
  readonly connection: Connection;
  readonly #socket: Socket;
  readonly #options: SourceOptions;
  readonly #faults: FaultLog;
  readonly #wire: PlayingClient;
  readonly #start = Promise.withResolvers<PullSource>();
  readonly #late = new Watchdog(START_MS, () => this.#end('the server did not begin the stream in time'));
  /** Media that came before `play`: no more than was read at once. */
  #held: Media[] = [];
  #ingest: RtmpIngest | undefined;
  #sink: SourceSink | undefined;
  #refusal: string | undefined;
  /** Why it ended before `play`. */
  #over: string | undefined;
  #closed = false;

  /** @param app application with the query for `connect` */
  constructor(socket: Socket, app: string, { secure, authority, name }: PlayUrl, options: SourceOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#faults = new FaultLog(options.log);
    this.result = endedBy(options.signal, () => socket.destroy(), this.#start.promise);
    this.connection = connectionOf(socket);
    const target = { tcUrl: `${secure ? 'rtmps' : 'rtmp'}://${authority}/${app}`, app, name, fourCcs: FOUR_CCS };
    this.#wire = new PlayingClient(target, (pieces) => this.#write(pieces), {
      playing: () => this.#playing(),
      refused: (description) => (this.#refusal = description),
      audio: (payload, timestamp) => this.#take((ingest) => ingest.audio(payload, timestamp)),
      video: (payload, timestamp) => this.#take((ingest) => ingest.video(payload, timestamp)),
      data: (values) => this.#take((ingest) => ingest.metadata(values)),
      malformedData: (error) => this.#faults.count(`malformed data message: ${error.message}`),
      ended: (reason) => this.#end(reason),
    });
    socket.on('error', (error: NodeJS.ErrnoException) => this.#end(`the connection failed: ${error.code}`));
    socket.on('close', () => this.#end('the server closed the connection'));
    socket.on('data', (data: Buffer) => this.#receive(data));
    this.#wire.open();
  }

  get refusal(): string | undefined {
    return this.#refusal;
  }

  get trouble(): string | undefined {
    return this.#faults.latest;
  }

  async play(sink: SourceSink): Promise<void> {
    if (this.#over !== undefined) throw new PullError(this.#over);
    const { clock, silenceMs = 0, log } = this.#options;
    this.#sink = sink;
    this.#ingest = new RtmpIngest({
      sink: trackSink(sink, clock),
      zeroBased: !clock.keepsTimes,
      extended: true,
      videoWaitMs: VIDEO_WAIT_MS,
      silenceMs,
      log,
      faults: this.#faults,
      onFailure: (reason) => this.#end(reason),
    });
    for (const media of this.#held.splice(0)) media(this.#ingest);
    this.#socket.resume();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#late.close();
    this.#ingest?.close();
    this.#faults.close();
    this.#socket.destroy();
  }

  #receive(data: Buffer): void {
    if (this.#closed) return;
    this.#sink?.received(data.length);
    try {
      this.#wire.receive(data);
    } catch (error) {
      if (!(error instanceof RtmpError)) throw error;
      this.#end(error.message);
    }
  }

  #write(pieces: readonly Buffer[]): void {
    if (this.#closed) return;
    this.#socket.cork();
    for (const piece of pieces) this.#socket.write(piece);
    this.#socket.uncork();
  }

  #playing(): void {
    this.#late.close();
    // the rest waits for `play`
    this.#socket.pause();
    this.#start.resolve(this);
  }

  #take(media: Media): void {
    if (this.#ingest === undefined) this.#held.push(media);
    else media(this.#ingest);
  }

  #end(reason: string): void {
    if (this.#closed) return;
    this.close();
    this.#over = reason;
    this.#start.reject(new PullError(reason));
    this.#sink?.end(reason);
  }
}
