import nodeDataChannel, { type PeerConnection, type Track } from 'node-datachannel';
import { parseRtp, type Rtp } from './rtp.ts';

/** Ends the threads of libdatachannel, which keep a test file from exiting: call it after the last test. */
export function releasePeers(): void {
  nodeDataChannel.cleanup();
}

const { PeerConnection: Peer, Video, Audio } = nodeDataChannel;

export interface Frame {
  readonly payloads: readonly Buffer[];
  readonly timestamp: number;
}

/** Payload types that the peer offers; they differ from the server's own on purpose. */
export const PEER_TYPES = { H264: 120, VP8: 121, VP9: 122, OPUS: 125 } as const;

type VideoCodec = 'H264' | 'VP8' | 'VP9';

export interface PeerOptions {
  readonly video?: VideoCodec | false;
  readonly audio?: boolean;
  readonly profile?: string;
  /** Takes each RTP packet as it came; packets are not collected then. */
  readonly onRtp?: (kind: 'video' | 'audio', packet: Buffer) => void;
}

/** A WebRTC viewer of libdatachannel: an implementation independent of mediasoup and of browsers. */
export class WhepPeer {
  readonly packets: { video: Rtp[]; audio: Rtp[] } = { video: [], audio: [] };
  state = 'new';
  readonly #connection: PeerConnection;
  readonly #tracks: Track[] = [];
  readonly #waiters = new Set<() => void>();
  readonly #onRtp: PeerOptions['onRtp'];

  constructor({ video = 'H264', audio = true, profile = DEFAULT_PROFILE, onRtp }: PeerOptions = {}) {
    this.#onRtp = onRtp;
    this.#connection = new Peer('viewer', { iceServers: [] });
    this.#connection.onStateChange((state) => {
      this.state = state;
      this.#wake();
    });
    if (video !== false) {
      const media = new Video('v', 'RecvOnly');
      if (video === 'H264') media.addH264Codec(PEER_TYPES.H264, profile);
      else if (video === 'VP8') media.addVP8Codec(PEER_TYPES.VP8);
      else media.addVP9Codec(PEER_TYPES.VP9);
      this.#receive(this.#connection.addTrack(media), 'video');
    }
    if (audio) {
      const media = new Audio('a', 'RecvOnly');
      media.addOpusCodec(PEER_TYPES.OPUS);
      this.#receive(this.#connection.addTrack(media), 'audio');
    }
  }

  /** The offer with all candidates. */
  async offer(): Promise<string> {
    const gathered = new Promise<void>((done) => {
      this.#connection.onGatheringStateChange((state) => state === 'complete' && done());
    });
    this.#connection.setLocalDescription();
    await gathered;
    return this.#connection.localDescription()?.sdp ?? '';
  }

  answer(sdp: string): void {
    this.#connection.setRemoteDescription(sdp, 'answer');
  }

  /** Offers to a WHEP endpoint and takes its answer. @throws Error for any status but 201 */
  async play(url: string): Promise<Response> {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/sdp' },
      body: await this.offer(),
    });
    if (response.status !== 201) throw new Error(`${response.status}: ${await response.text()}`);
    this.answer(await response.text());
    return response;
  }

  /** Resolves when `condition` holds. */
  async until(condition: (peer: this) => boolean): Promise<void> {
    while (!condition(this)) await new Promise<void>((done) => this.#waiters.add(done));
  }

  /** Whole video frames, those that ended. */
  frames(): Frame[] {
    const frames: Frame[] = [];
    let payloads: Buffer[] = [];
    for (const { payload, marker, timestamp } of this.packets.video) {
      payloads.push(payload);
      if (!marker) continue;
      frames.push({ payloads, timestamp });
      payloads = [];
    }
    return frames;
  }

  close(): void {
    for (const track of this.#tracks) track.close();
    this.#connection.close();
  }

  #receive(track: Track, kind: 'video' | 'audio'): void {
    this.#tracks.push(track);
    track.onMessage((message) => {
      const type = message.readUInt8(1);
      // RTCP (RFC 5761 section 4)
      if (type >= 192 && type <= 223) return;
      if (this.#onRtp !== undefined) return this.#onRtp(kind, message);
      this.packets[kind].push(parseRtp(message));
      this.#wake();
    });
  }

  #wake(): void {
    for (const waiter of this.#waiters) waiter();
    this.#waiters.clear();
  }
}

const DEFAULT_PROFILE = 'profile-level-id=42e01f;packetization-mode=1;level-asymmetry-allowed=1';
