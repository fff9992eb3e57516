import type { Socket } from 'node:net';
import { KilnError } from '../../errors.ts';
import { hostInUrl } from '../../lib/address.ts';
import { Watchdog } from '../../lib/watchdog.ts';
import type { Logger } from '../../log/log.ts';
import { header, type RtspRequest } from '../../protocols/rtsp/message.ts';
import { readRequestUrl, type RequestUrl } from '../../protocols/rtsp/request-url.ts';
import { RtspServerConnection, type RtspAnswer } from '../../protocols/rtsp/server-connection.ts';
import { readTransportOffers } from '../../protocols/rtsp/transport-offer.ts';
import type { Peer } from '../../protocols/tcp.ts';
import { rejection, RtspAdmission, type AdmissionOptions } from './admission.ts';
import { describeStream } from './description.ts';
import type { RtspFeed } from './feed.ts';
import { TrackTransport, type TransportContext } from './track-transport.ts';
import { RtspViewer, type Playable } from './viewer.ts';

export interface SessionContext
  extends Pick<AdmissionOptions<Playable>, 'usersOf' | 'admit' | 'rejected'>, Pick<TransportContext, 'datagrams'> {
  readonly log: Logger;
  readonly feed: (playable: Playable) => RtspFeed;
  readonly onPlaying: () => void;
  readonly onClose: () => void;
}

/** Stream of a connection. */
interface Current {
  readonly url: RequestUrl;
  readonly viewer: RtspViewer;
  readonly transport: TrackTransport;
}

type Handler = (request: RtspRequest) => RtspAnswer | Promise<RtspAnswer>;

const METHODS = 'OPTIONS, DESCRIBE, SETUP, PLAY, PAUSE, TEARDOWN, GET_PARAMETER, SET_PARAMETER';
/** A client that has set up nothing, and asks for nothing for so long, is disconnected. */
const ASKS_NOTHING_MS = 10_000;
/** Session timeout (RFC 2326 section 12.37). */
const TIMEOUT_SECONDS = 60;
/** A player that receives nothing for this long is disconnected. */
const MAX_STALLED_MS = 30_000;
const OK = 200;
const NOT_FOUND: RtspAnswer = { status: 404 };
const NOT_NOW: RtspAnswer = { status: 455 };

/**
 * One client of RTSP (RFC 2326), from its first byte to its last. A connection has one session at a time, which ends with it.
 * Closing is idempotent, and logs its reason once.
 */
export class RtspSession {
  readonly #connection: RtspServerConnection;
  readonly #peer: Peer;
  readonly #context: SessionContext;
  readonly #admission: RtspAdmission<Playable>;
  readonly #gone = new AbortController();
  #log: Logger;
  #current: Current | undefined;
  #silence: Watchdog;

  constructor(socket: Socket, peer: Peer, context: SessionContext) {
    this.#peer = peer;
    this.#context = context;
    this.#log = context.log.child({ remote: `${hostInUrl(peer.remoteAddress)}:${peer.remotePort}` });
    this.#silence = this.#watch(ASKS_NOTHING_MS);
    const { usersOf, admit, rejected } = context;
    this.#admission = new RtspAdmission({
      peer,
      usersOf,
      admit,
      rejected,
      signal: this.#gone.signal,
      onGuessing: () => this.close('it guesses passwords', 'warn'),
    });
    this.#connection = new RtspServerConnection(socket, {
      request: (request) => this.#request(request),
      // reports of what it receives
      media: () => this.#silence.heard(),
      fault: (err) => this.#log.error({ err }, 'the RTSP session failed'),
      end: (reason, level) => this.#end(reason, level),
    });
  }

  /** @param level how the reason is logged */
  close(reason: string, level: 'info' | 'warn' = 'info'): void {
    this.#connection.end(reason, level);
  }

  /** Closes a player that has stalled. */
  check(): void {
    const stalled = this.#current?.viewer.playback?.stalledMs ?? 0;
    if (stalled > MAX_STALLED_MS) this.close('the player does not receive the stream', 'warn');
  }

  readonly #methods: Readonly<Record<string, Handler>> = {
    OPTIONS: () => this.#ok({ Public: METHODS }),
    DESCRIBE: (request) => this.#describe(request),
    SETUP: (request) => this.#setUp(request),
    PLAY: (request) => this.#play(request),
    PAUSE: () => this.#pause(),
    TEARDOWN: (request) => this.#tearDown(request),
    GET_PARAMETER: () => this.#ok(),
    SET_PARAMETER: ({ body }) => (body.length === 0 ? this.#ok() : { status: 451 }),
  };

  #request(request: RtspRequest): RtspAnswer | Promise<RtspAnswer> {
    this.#silence.heard();
    const { method, headers } = request;
    if (header(headers, 'cseq') === undefined) return { status: 400 };
    const unsupported = headers.get('require') ?? headers.get('proxy-require');
    if (unsupported !== undefined) return { status: 551, fields: { Unsupported: unsupported } };
    const handler = Object.hasOwn(this.#methods, method) ? this.#methods[method] : undefined;
    if (handler === undefined) return { status: 501, fields: { Public: METHODS } };
    const session = header(headers, 'session')?.split(';')[0]?.trim();
    if (session !== undefined && session !== this.#current?.transport.session) return { status: 454 };
    return handler(request);
  }

  #ok(fields: RtspAnswer['fields'] = {}): RtspAnswer {
    return { status: OK, fields: { Session: this.#current?.transport.session, ...fields } };
  }

  async #describe(request: RtspRequest): Promise<RtspAnswer> {
    const accept = header(request.headers, 'accept');
    if (accept !== undefined && !/application\/(?:sdp|\*)|\*\/\*/i.test(accept)) return { status: 406 };
    const url = readRequestUrl(request.uri);
    if (url === undefined) return NOT_FOUND;
    const current = await this.#enter(request, url);
    if ('status' in current) return current;
    const { output, feed } = current.viewer;
    const body = describeStream({
      name: output.name,
      id: output.createdTime.getTime(),
      address: this.#peer.localAddress,
      base: url.base,
      tracks: feed.tracks,
    });
    const fields = { 'Content-Base': url.base, 'Content-Type': 'application/sdp', 'Cache-Control': 'no-cache' };
    return { ...this.#ok(fields), body };
  }

  async #setUp(request: RtspRequest): Promise<RtspAnswer> {
    const url = readRequestUrl(request.uri);
    if (url === undefined) return NOT_FOUND;
    const current = await this.#enter(request, url);
    if ('status' in current) return current;
    const { viewer, transport } = current;
    if (viewer.playback !== undefined) return NOT_NOW;
    const { tracks } = viewer.feed;
    const index = url.track ?? (tracks.length === 1 ? 0 : undefined);
    if (index === undefined) return { status: 459 };
    const track = tracks[index];
    if (track === undefined) return NOT_FOUND;
    const isFirst = transport.session === undefined;
    const agreed = transport.setUp(index, readTransportOffers(header(request.headers, 'transport') ?? ''));
    if (agreed === undefined) return { status: 461 };
    if (isFirst) this.#rewatch(TIMEOUT_SECONDS * 1000);
    const ssrc = track.ssrc.toString(16).toUpperCase().padStart(8, '0');
    return this.#ok({
      Session: `${transport.session};timeout=${TIMEOUT_SECONDS}`,
      Transport: `${agreed};ssrc=${ssrc}`,
    });
  }

  async #play({ uri }: RtspRequest): Promise<RtspAnswer> {
    const current = this.#current;
    if (current === undefined) return NOT_NOW;
    const { url, viewer, transport } = current;
    const { sink, tracks } = transport;
    if (sink === undefined) return NOT_NOW;
    const { track } = readRequestUrl(uri) ?? {};
    if (track !== undefined && tracks.size > 1) return { status: 460 };
    const Range = 'npt=now-';
    // some clients keep a session alive so
    if (viewer.playback !== undefined) return this.#ok({ Range });
    try {
      const starts = await viewer.play(sink, tracks);
      if (this.#connection.ended) return NOT_NOW;
      this.#context.onPlaying();
      this.#log.info({ session: viewer.id, transport: transport.kind }, 'the RTSP viewer plays');
      const info = starts.length === 0 ? undefined : RtspViewer.info(url.base, starts);
      return { ...this.#ok({ Range, 'RTP-Info': info }), sent: () => viewer.playback?.flow() };
    } catch (error) {
      if (!(error instanceof KilnError)) throw error;
      this.#leave(error.message);
      return rejection(error);
    }
  }

  #pause(): RtspAnswer {
    if (this.#current?.transport.sink === undefined) return NOT_NOW;
    this.#current.viewer.pause();
    return this.#ok();
  }

  #tearDown({ uri }: RtspRequest): RtspAnswer {
    const { transport } = this.#current ?? {};
    if (transport?.sink === undefined) return { status: 454 };
    const { track } = readRequestUrl(uri) ?? {};
    if (track !== undefined && transport.tracks.size > 1) {
      transport.tracks.delete(track);
      return this.#ok();
    }
    this.#leave('the client ended the session');
    this.#rewatch(ASKS_NOTHING_MS);
    return { status: OK };
  }

  /** Admits the client to the stream of a URL, once. */
  async #enter(request: RtspRequest, url: RequestUrl): Promise<Current | RtspAnswer> {
    const known = this.#current;
    if (known !== undefined) {
      if (known.url.base === url.base && !known.viewer.feed.closed) return known;
      if (known.transport.sink !== undefined) return NOT_NOW;
      this.#leave('the client asks for another stream');
    }
    const admitted = await this.#admission.admit(request, url);
    if ('answer' in admitted) return admitted.answer;
    const { grant } = admitted;
    const { output, tracks } = grant.found;
    if (this.#connection.ended || output.closed || tracks.length === 0) {
      grant.end('the stream cannot be described');
      return NOT_FOUND;
    }
    const { host, app, stream, playlist, query } = url;
    this.#log = this.#log.child({ host, app, stream });
    const viewer = new RtspViewer({
      grant,
      feed: this.#context.feed(grant.found),
      byPlaylist: playlist !== undefined,
      fromLast: query.get('gop') !== '0',
      onEnd: (reason) => this.close(reason),
    });
    const transport = new TrackTransport({
      connection: this.#connection,
      datagrams: this.#context.datagrams,
      address: this.#peer.remoteAddress,
      heard: () => this.#silence.heard(),
    });
    this.#current = { url, viewer, transport };
    return this.#current;
  }

  #leave(reason: string): void {
    const current = this.#current;
    this.#current = undefined;
    current?.viewer.close(reason);
    current?.transport.close();
  }

  #end(reason: string, severity: 'info' | 'warn'): void {
    this.#silence.close();
    this.#gone.abort();
    const { viewer } = this.#current ?? {};
    const dropped = viewer?.playback?.dropped ?? 0;
    const level = severity === 'info' && viewer === undefined ? 'debug' : severity;
    this.#leave(reason);
    this.#log[level](dropped > 0 ? { dropped } : {}, `RTSP session closed: ${reason}`);
    this.#context.onClose();
  }

  #watch(ms: number): Watchdog {
    return new Watchdog(ms, () => {
      const { transport, viewer } = this.#current ?? {};
      // a player over TCP is there as long as it receives
      if (transport?.kind === 'tcp' && viewer?.playback !== undefined) this.#silence = this.#watch(ms);
      else this.close(`neither requests nor reports within ${ms} ms`);
    }).unref();
  }

  #rewatch(ms: number): void {
    this.#silence.close();
    this.#silence = this.#watch(ms);
  }
}
