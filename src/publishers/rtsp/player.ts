import { KilnError } from '../../errors.ts';
import type { Logger } from '../../log/log.ts';
import { header, type RtspRequest } from '../../protocols/rtsp/message.ts';
import { readRequestUrl, type RequestUrl } from '../../protocols/rtsp/request-url.ts';
import type { RtspAnswer } from '../../protocols/rtsp/server-connection.ts';
import { readTransportOffers } from '../../protocols/rtsp/transport-offer.ts';
import type { SessionGrant } from '../../access/access.ts';
import { rejection } from '../../rtsp/admission.ts';
import type { RtspHandler, RtspLink, RtspPart } from '../../rtsp/part.ts';
import type { RtspAccess } from '../../rtsp/request.ts';
import { ASKS_NOTHING_MS } from '../../rtsp/session.ts';
import { writeDescription } from '../../protocols/rtsp/write-description.ts';
import type { RtspFeed } from './feed.ts';
import { TrackTransport } from './track-transport.ts';
import { RtspViewer, type Playable } from './viewer.ts';

export interface PlayerContext {
  readonly admit: (asked: RtspAccess) => Promise<SessionGrant<Playable>>;
  readonly feed: (playable: Playable) => RtspFeed;
}

/** Stream of a connection. */
interface Current {
  readonly url: RequestUrl;
  readonly viewer: RtspViewer;
  readonly transport: TrackTransport;
}

/** Session timeout (RFC 2326 section 12.37). */
const TIMEOUT_SECONDS = 60;
/** A player that receives nothing for this long is disconnected. */
const MAX_STALLED_MS = 30_000;
const OK = 200;
const NOT_FOUND: RtspAnswer = { status: 404 };
const NOT_NOW: RtspAnswer = { status: 455 };

/** A client that plays: it describes a stream, sets up tracks, and plays them. */
export class RtspPlayer implements RtspPart {
  readonly #link: RtspLink;
  readonly #context: PlayerContext;
  #log: Logger;
  #current: Current | undefined;

  constructor(link: RtspLink, context: PlayerContext) {
    this.#link = link;
    this.#context = context;
    this.#log = link.log;
  }

  readonly methods: Readonly<Record<string, RtspHandler>> = {
    DESCRIBE: (request) => this.#describe(request),
    SETUP: (request) => this.#setUp(request),
    PLAY: (request) => this.#play(request),
    PAUSE: () => this.#pause(),
    TEARDOWN: (request) => this.#tearDown(request),
  };

  get session(): string | undefined {
    return this.#current?.transport.session;
  }

  get log(): Logger {
    return this.#log;
  }

  /** Whether it plays over TCP: it is there as long as it receives. */
  get mayBeSilent(): boolean {
    const { transport, viewer } = this.#current ?? {};
    return transport?.kind === 'tcp' && viewer?.playback !== undefined;
  }

  get end(): RtspPart['end'] {
    const { viewer } = this.#current ?? {};
    const dropped = viewer?.playback?.dropped ?? 0;
    return { level: viewer === undefined ? 'debug' : 'info', fields: dropped > 0 ? { dropped } : {} };
  }

  /** Its packets are reports of what it receives. */
  media(): void {}

  /** Closes a player that has stalled. */
  check(): void {
    const stalled = this.#current?.viewer.playback?.stalledMs ?? 0;
    if (stalled > MAX_STALLED_MS) this.#link.close('the player does not receive the stream', 'warn');
  }

  close(reason: string): void {
    const current = this.#current;
    this.#current = undefined;
    current?.viewer.close(reason);
    current?.transport.close();
  }

  #ok(fields: RtspAnswer['fields'] = {}): RtspAnswer {
    return { status: OK, fields: { Session: this.session, ...fields } };
  }

  async #describe(request: RtspRequest): Promise<RtspAnswer> {
    const accept = header(request.headers, 'accept');
    if (accept !== undefined && !/application\/(?:sdp|\*)|\*\/\*/i.test(accept)) return { status: 406 };
    const url = readRequestUrl(request.uri);
    if (url === undefined) return NOT_FOUND;
    const current = await this.#enter(request, url);
    if ('status' in current) return current;
    const { output, feed } = current.viewer;
    const body = writeDescription({
      name: output.name,
      id: output.createdTime.getTime(),
      address: this.#link.peer.localAddress,
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
    if (isFirst) this.#link.watch(TIMEOUT_SECONDS * 1000);
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
      if (this.#link.connection.ended) return NOT_NOW;
      this.#link.serves();
      this.#log.info({ session: viewer.id, transport: transport.kind }, 'the RTSP viewer plays');
      const info = starts.length === 0 ? undefined : RtspViewer.info(url.base, starts);
      return { ...this.#ok({ Range, 'RTP-Info': info }), sent: () => viewer.playback?.flow() };
    } catch (error) {
      if (!(error instanceof KilnError)) throw error;
      this.close(error.message);
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
    this.close('the client ended the session');
    this.#link.watch(ASKS_NOTHING_MS);
    return { status: OK };
  }

  /** Admits the client to the stream of a URL, once. */
  async #enter(request: RtspRequest, url: RequestUrl): Promise<Current | RtspAnswer> {
    const known = this.#current;
    if (known !== undefined) {
      if (known.url.base === url.base && !known.viewer.feed.closed) return known;
      if (known.transport.sink !== undefined) return NOT_NOW;
      this.close('the client asks for another stream');
    }
    const { admission, connection, datagrams, peer, log } = this.#link;
    const admitted = await admission.admit(request, url, 'outgoing', this.#context.admit);
    if ('answer' in admitted) return admitted.answer;
    const { grant } = admitted;
    const { output, tracks } = grant.found;
    if (connection.ended || output.closed || tracks.length === 0) {
      grant.end('the stream cannot be described');
      return NOT_FOUND;
    }
    const { host, app, stream, playlist, query } = url;
    this.#log = log.child({ host, app, stream });
    const viewer = new RtspViewer({
      grant,
      feed: this.#context.feed(grant.found),
      byPlaylist: playlist !== undefined,
      fromLast: query.get('gop') !== '0',
      onEnd: (reason) => this.#link.close(reason),
    });
    const transport = new TrackTransport({
      connection,
      datagrams,
      address: peer.remoteAddress,
      heard: () => this.#link.heard(),
    });
    this.#current = { url, viewer, transport };
    return this.#current;
  }
}
