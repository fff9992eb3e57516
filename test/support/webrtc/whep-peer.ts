import nodeDataChannel, { type DataChannel, type PeerConnection, type Track } from 'node-datachannel';
import { Nacks } from './nacks.ts';
import { PEER_TYPES } from './peer-types.ts';

const { PeerConnection: Peer, Video, Audio } = nodeDataChannel;

export type Kind = 'video' | 'audio';

export interface PeerOptions {
  readonly video?: 'H264' | 'H265' | 'AV1' | 'VP8' | 'VP9' | false;
  readonly audio?: boolean;
  /** It asks for events: a data channel that both ends know of beforehand. */
  readonly events?: boolean;
  /** It asks for lost H.265 again, in the stream itself or under `rtx`. */
  readonly again?: { readonly rtx?: number };
  /** Format parameters of H.264. */
  readonly profile?: string;
}

export interface PeerEvents {
  /** Takes every RTP packet. */
  readonly onRtp: (kind: Kind, packet: Buffer) => void;
  /** Takes every compound RTCP packet, whichever media it is about: libdatachannel gives each track all of them. */
  readonly onRtcp?: (kind: Kind, packet: Buffer) => void;
  readonly onState?: (state: string) => void;
  readonly onEvent?: (message: string) => void;
}

const DEFAULT_PROFILE = 'profile-level-id=42e01f;packetization-mode=1;level-asymmetry-allowed=1';

/**
 * A WebRTC viewer of libdatachannel: an implementation independent of mediasoup and of browsers. Its threads
 * neither let a process exit nor bear its exit: tests use it through `ViewerPeer`, programs end by a signal.
 */
export class WhepPeer {
  state = 'new';
  readonly #options: PeerOptions & PeerEvents;
  readonly #connection: PeerConnection = new Peer('viewer', { iceServers: [] });
  /** A track whose object is collected goes silent. */
  readonly #tracks: Track[] = [];
  /** The same of a channel. */
  #events: DataChannel | undefined;
  #nacks: Nacks | undefined;
  readonly #gathered: Promise<void>;

  constructor(options: PeerOptions & PeerEvents) {
    this.#options = options;
    this.#connection.onStateChange((state) => {
      this.state = state;
      options.onState?.(state);
    });
    this.#gathered = new Promise((done) => {
      this.#connection.onGatheringStateChange((state) => state === 'complete' && done());
    });
    this.#connection.onTrack((track) => this.#receive(track, track.type() === 'audio' ? 'audio' : 'video'));
  }

  /** The offer with all candidates. */
  async offer(): Promise<string> {
    const { video = 'H264', audio = true, profile = DEFAULT_PROFILE } = this.#options;
    if (video !== false) {
      const media = new Video('v', 'RecvOnly');
      if (video === 'H264') media.addH264Codec(PEER_TYPES.H264, profile);
      else if (video === 'H265') this.#addH265(media);
      else if (video === 'AV1') media.addAV1Codec(PEER_TYPES.AV1);
      else if (video === 'VP8') media.addVP8Codec(PEER_TYPES.VP8);
      else media.addVP9Codec(PEER_TYPES.VP9);
      this.#receive(this.#connection.addTrack(media), 'video');
    }
    if (audio) {
      const media = new Audio('a', 'RecvOnly');
      media.addOpusCodec(PEER_TYPES.OPUS);
      this.#receive(this.#connection.addTrack(media), 'audio');
    }
    if (this.#options.events === true) {
      this.#events = this.#connection.createDataChannel('events', { negotiated: true, id: 0 });
      this.#events.onMessage((message) => this.#options.onEvent?.(String(message)));
    }
    this.#connection.setLocalDescription();
    return this.#local();
  }

  /** Takes an offer; the answer with all candidates. */
  answerTo(sdp: string): Promise<string> {
    this.#connection.setRemoteDescription(sdp, 'offer');
    return this.#local();
  }

  answer(sdp: string): void {
    this.#connection.setRemoteDescription(sdp, 'answer');
  }

  /** Offers to a WHEP endpoint and takes its answer. @throws Error for any status but 201 */
  async play(url: string): Promise<Response> {
    const body = await this.offer();
    const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/sdp' }, body });
    const answer = await response.text();
    if (response.status !== 201) throw new Error(`${response.status}: ${answer}`);
    this.answer(answer);
    return response;
  }

  close(): void {
    this.#nacks?.close();
    this.#connection.close();
  }

  async #local(): Promise<string> {
    await this.#gathered;
    return this.#connection.localDescription()?.sdp ?? '';
  }

  #addH265(media: InstanceType<typeof Video>): void {
    const { rtx } = this.#options.again ?? {};
    media.addH265Codec(PEER_TYPES.H265);
    if (rtx !== undefined) media.addRTXCodec(rtx, PEER_TYPES.H265, 90_000);
  }

  #receive(track: Track, kind: Kind): void {
    this.#tracks.push(track);
    if (kind === 'video' && this.#options.again !== undefined) this.#nacks ??= new Nacks(track, PEER_TYPES.H265);
    track.onMessage((packet) => {
      const type = packet.readUInt8(1);
      // RFC 5761 section 4
      const isRtcp = type >= 192 && type <= 223;
      if (isRtcp) this.#options.onRtcp?.(kind, packet);
      else {
        if (kind === 'video') this.#nacks?.take(packet);
        this.#options.onRtp(kind, packet);
      }
    });
  }
}
