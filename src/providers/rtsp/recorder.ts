import type { PublisherGrant } from '../../access/publisher-grant.ts';
import { KilnError } from '../../errors.ts';
import type { Logger } from '../../log/log.ts';
import { controlUrl } from '../../protocols/rtsp/control.ts';
import { readAnnouncement, type AnnouncedTrack, type RtspAnnouncement } from '../../protocols/rtsp/description.ts';
import { RtspError } from '../../protocols/rtsp/error.ts';
import { header, type RtspRequest } from '../../protocols/rtsp/message.ts';
import { readRequestUrl } from '../../protocols/rtsp/request-url.ts';
import type { RtspAnswer } from '../../protocols/rtsp/server-connection.ts';
import { readTransportOffers } from '../../protocols/rtsp/transport-offer.ts';
import { rejection } from '../../rtsp/admission.ts';
import type { RtspHandler, RtspLink, RtspPart } from '../../rtsp/part.ts';
import type { RtspAccess } from '../../rtsp/request.ts';
import { ASKS_NOTHING_MS } from '../../rtsp/session.ts';
import { isTakenMedia } from '../rtsp-intake/open.ts';
import { RtspPublication } from './publication.ts';
import { RecordTransport } from './record-transport.ts';

/** Admits a publisher. @throws KilnError */
export type AdmitPublisher = (asked: RtspAccess) => Promise<PublisherGrant<'rtsp'>>;

/** A stream that the client may publish, with the tracks that it announced. */
interface Announced {
  readonly grant: PublisherGrant<'rtsp'>;
  /** URL of the announcement. */
  readonly url: string;
  readonly announcement: RtspAnnouncement;
  readonly transport: RecordTransport;
  readonly log: Logger;
}

/**
 *   idle ──ANNOUNCE──▶ announced ──RECORD──▶ recording
 *    ▲                     │                    ├──BYE──▶ over
 *    └──────TEARDOWN───────┴────────────────────┴───────────┘
 */
type Phase =
  | { readonly name: 'idle' }
  | (Announced & { readonly name: 'announced' })
  | (Announced & {
      readonly name: 'recording';
      readonly publication: RtspPublication;
      /** Place in the publication by place in the description. */
      readonly places: ReadonlyMap<number, number>;
    })
  | (Announced & {
      /** The stream has ended, and the client is expected to end its session. */
      readonly name: 'over';
      readonly late: NodeJS.Timeout;
    });

/** Session timeout (RFC 2326 section 12.37): packets count as well as requests. */
const TIMEOUT_SECONDS = 30;
/** After so long without a byte, TCP asks whether the client is there. */
const KEEP_ALIVE_MS = 15_000;
/** Time for a client to end its session after its media has ended. */
const LAST_WORDS_MS = 1000;
const SDP = /^application\/sdp\b/i;
const OK = 200;
const NOT_NOW: RtspAnswer = { status: 455 };
const UNSUPPORTED_MEDIA = 415;

/** A client that publishes: it announces a stream, sets up its tracks, and records (RFC 2326 sections 10.3, 10.4 and 10.11). */
export class RtspRecorder implements RtspPart {
  readonly mayBeSilent = false;
  /** The end of its stream has a line of its own. */
  readonly end = { level: 'debug', fields: {} } as const;
  readonly #link: RtspLink;
  readonly #admit: AdmitPublisher;
  #phase: Phase = { name: 'idle' };

  constructor(link: RtspLink, admit: AdmitPublisher) {
    this.#link = link;
    this.#admit = admit;
  }

  readonly methods: Readonly<Record<string, RtspHandler>> = {
    ANNOUNCE: (request) => this.#announce(request),
    SETUP: (request) => this.#setUp(request),
    RECORD: () => this.#record(),
    PAUSE: () => (this.#phase.name === 'recording' ? this.#ok() : NOT_NOW),
    TEARDOWN: (request) => this.#tearDown(request),
  };

  get session(): string | undefined {
    return this.#phase.name === 'idle' ? undefined : this.#phase.transport.session;
  }

  get log(): Logger {
    return this.#phase.name === 'idle' ? this.#link.log : this.#phase.log;
  }

  media(channel: number, data: Buffer): void {
    if (this.#phase.name === 'recording') this.#phase.transport.media(channel, data);
  }

  /** Its silence is noticed by the session. */
  check(): void {}

  close(reason: string): void {
    const phase = this.#phase;
    this.#phase = { name: 'idle' };
    if (phase.name === 'idle') return;
    phase.transport.close();
    if (phase.name === 'recording') phase.publication.end(reason);
    else if (phase.name === 'over') clearTimeout(phase.late);
    else phase.grant.end(reason);
  }

  #ok(fields: RtspAnswer['fields'] = {}): RtspAnswer {
    return { status: OK, fields: { Session: this.session, ...fields } };
  }

  async #announce(request: RtspRequest): Promise<RtspAnswer> {
    if (this.#phase.name !== 'idle') return NOT_NOW;
    if (!SDP.test(header(request.headers, 'content-type') ?? 'application/sdp')) return { status: UNSUPPORTED_MEDIA };
    const url = readRequestUrl(request.uri);
    if (url === undefined || url.playlist !== undefined || url.track !== undefined) return { status: 404 };
    const { admission, connection, log: own } = this.#link;
    const admitted = await admission.admit(request, url, 'incoming', this.#admit);
    if ('answer' in admitted) return admitted.answer;
    const { grant, asked } = admitted;
    if (connection.ended) {
      grant.end('the publisher has gone');
      return NOT_NOW;
    }
    const { host, app, stream } = url;
    const log = own.child({ host, app, stream });
    const announcement = readOrError(request.body);
    if (announcement instanceof RtspError) {
      grant.end(announcement.message);
      admission.report(asked, 'incoming', announcement.message);
      return { status: announcement.status ?? UNSUPPORTED_MEDIA };
    }
    const transport = new RecordTransport({
      connection,
      datagrams: this.#link.datagrams,
      address: this.#link.peer.remoteAddress,
      packet: (track, isRtcp, data, bytes) => this.#packet(track, isRtcp, data, bytes),
    });
    this.#phase = { name: 'announced', grant, url: request.uri, announcement, transport, log };
    for (const { media, codecs } of announcement.tracks)
      if (media === undefined) log.warn({ encoding: codecs }, 'a track over RTSP is not supported and is ignored');
    return this.#ok();
  }

  #setUp({ uri, headers }: RtspRequest): RtspAnswer {
    const phase = this.#phase;
    if (phase.name !== 'announced') return NOT_NOW;
    const { announcement, transport } = phase;
    const track = trackOf(uri, phase.url, announcement);
    if (track === undefined) return { status: 404 };
    const agreed = transport.setUp(track, readTransportOffers(header(headers, 'transport') ?? ''));
    if (agreed === undefined) return { status: 461 };
    this.#link.watch(TIMEOUT_SECONDS * 1000);
    return this.#ok({ Session: `${transport.session};timeout=${TIMEOUT_SECONDS}`, Transport: agreed });
  }

  async #record(): Promise<RtspAnswer> {
    const phase = this.#phase;
    // a client that goes on after a pause
    if (phase.name === 'recording') return this.#ok();
    if (phase.name !== 'announced') return NOT_NOW;
    const { announcement, transport, grant, log } = phase;
    const taken = announcement.tracks.flatMap(({ media }, track) =>
      media !== undefined && transport.tracks.has(track) ? { media, track } : [],
    );
    if (taken.length === 0 || transport.kind === undefined) return NOT_NOW;
    const { connection } = this.#link;
    try {
      const publication = await RtspPublication.open(grant, this.#source(phase), {
        media: taken.map(({ media }) => media),
        transport: transport.kind,
        log,
        report: (place, data) => transport.report(taken[place]?.track ?? -1, data),
        onEnd: (reason) => this.#over(reason),
      });
      if (connection.ended) {
        publication.end('the publisher has gone');
        return NOT_NOW;
      }
      const places = new Map(taken.map(({ track }, place) => [track, place]));
      this.#phase = { ...phase, name: 'recording', publication, places };
      publication.input.once('close', (reason) => this.#ended(publication, reason));
      connection.keepAlive(KEEP_ALIVE_MS);
      this.#link.serves();
      log.debug({ transport: transport.kind }, 'publishing was accepted');
      return this.#ok();
    } catch (error) {
      if (!(error instanceof KilnError) && !(error instanceof RtspError)) throw error;
      this.close(error.message);
      return error instanceof KilnError ? rejection(error) : { status: UNSUPPORTED_MEDIA };
    }
  }

  #source({ url, grant: { app, stream } }: Announced): Parameters<PublisherGrant<'rtsp'>['publish']>[0] {
    const authority = /^[a-z]+:\/\/(?:[^@/?#]*@)?([^/?#]+)/i.exec(url)?.[1] ?? '';
    const scheme = this.#link.isSecure ? 'rtsps' : 'rtsp';
    return { type: 'Rtsp', kind: 'rtsp', url: `${scheme}://${authority}/${app}/${stream}` };
  }

  #packet(track: number, isRtcp: boolean, data: Buffer, bytes: number): void {
    this.#link.heard();
    if (this.#phase.name !== 'recording') return;
    const { publication, places } = this.#phase;
    const place = places.get(track);
    // packets of tracks that are not supported are received, but belong to nothing
    if (place === undefined) publication.input.counters.received(bytes);
    else publication.packet(place, isRtcp, data, bytes);
  }

  /** Ends the stream for its media, such as after a BYE, which comes before TEARDOWN. */
  #over(reason: string): void {
    const phase = this.#phase;
    if (phase.name !== 'recording') return;
    const late = setTimeout(() => this.#link.close(reason), LAST_WORDS_MS).unref();
    this.#phase = { ...phase, name: 'over', late };
    phase.publication.end(reason);
  }

  #ended(publication: RtspPublication, reason: string): void {
    if (this.#phase.name === 'recording' && this.#phase.publication === publication) this.#link.close(reason);
  }

  #tearDown({ uri }: RtspRequest): RtspAnswer {
    const phase = this.#phase;
    if (phase.name === 'idle' || phase.transport.session === undefined) return { status: 454 };
    const track = trackOf(uri, phase.url, phase.announcement);
    if (track !== undefined && phase.transport.tracks.size > 1) return { status: 460 };
    this.close('the publisher ended the stream');
    this.#link.watch(ASKS_NOTHING_MS);
    return { status: OK };
  }
}

/** Reads the description, without the tracks that no stream can have. */
function readOrError(body: Buffer): RtspAnnouncement | RtspError {
  try {
    const { control, tracks } = readAnnouncement(body.toString('utf8'));
    const taken = tracks.map((track) =>
      track.media && isTakenMedia(track.media) ? track : { ...track, media: undefined },
    );
    if (taken.some(({ media }) => media !== undefined)) return { control, tracks: taken };
    return new RtspError(`no track is in a supported codec, only ${tracks.map(({ codecs }) => codecs).join(', ')}`);
  } catch (error) {
    if (error instanceof RtspError) return error;
    throw error;
  }
}

/**
 * Place of the track that a URL names: the one with that control URL, or with its last part, or the only one. Clients join URLs in
 * different ways.
 */
function trackOf(uri: string, announced: string, { control, tracks }: RtspAnnouncement): number | undefined {
  const base = controlUrl(announced, control);
  const isNamed = ({ control: own }: AnnouncedTrack): boolean =>
    own !== undefined && own !== '' && own !== '*' && (uri === controlUrl(base, own) || uri.endsWith(`/${own}`));
  const found = tracks.findIndex(isNamed);
  if (found >= 0) return found;
  return tracks.length === 1 ? 0 : undefined;
}
