import nodeDataChannel, { type PeerConnection, type Track } from 'node-datachannel';
import { parseRtp } from '../rtp.ts';
import { FrameLog } from './frame-log.ts';
import { findStamp, monotonic, type Stamp } from './stamp.ts';

const PAYLOAD_TYPE = 102;
const PROFILE = 'profile-level-id=42e01f;packetization-mode=1;level-asymmetry-allowed=1';

/** Watches a stream by WHEP and notes which stamped frames came whole, and when. */
export class WhepViewer {
  readonly frames = new FrameLog();
  /** Milliseconds from a frame's stamp to its last packet. */
  delays: number[] = [];
  packets = 0;
  lost = 0;
  readonly started = monotonic();
  /** When the first whole frame was there, which is a key frame, in milliseconds of the stamps' clock. */
  firstFrame = 0;
  readonly #peer: PeerConnection;
  readonly #track: Track;
  #sequence: number | undefined;
  #stamp: Stamp | undefined;
  /** A packet of the present frame is missing. */
  #broken = false;

  private constructor() {
    this.#peer = new nodeDataChannel.PeerConnection('viewer', { iceServers: [] });
    const video = new nodeDataChannel.Video('v', 'RecvOnly');
    video.addH264Codec(PAYLOAD_TYPE, PROFILE);
    this.#track = this.#peer.addTrack(video);
    this.#track.onMessage((message) => {
      const type = message.readUInt8(1);
      // RTCP (RFC 5761 section 4)
      if (type < 192 || type > 223) this.#packet(message);
    });
  }

  /** Offers to a WHEP endpoint and takes its answer. @throws Error for any status but 201 */
  static async start(url: string): Promise<WhepViewer> {
    const viewer = new WhepViewer();
    const gathered = new Promise<void>((done) => {
      viewer.#peer.onGatheringStateChange((state) => state === 'complete' && done());
    });
    viewer.#peer.setLocalDescription();
    await gathered;
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/sdp' },
      body: viewer.#peer.localDescription()?.sdp ?? '',
    });
    const body = await response.text();
    if (response.status !== 201) throw new Error(`${response.status}: ${body}`);
    viewer.#peer.setRemoteDescription(body, 'answer');
    return viewer;
  }

  get connected(): boolean {
    return this.#peer.state() === 'connected';
  }

  close(): void {
    this.#track.close();
    this.#peer.close();
  }

  #packet(packet: Buffer): void {
    const { sequence, marker, payload } = parseRtp(packet);
    const missing = this.#sequence === undefined ? 0 : (sequence - this.#sequence - 1) & 0xffff;
    // the server probes for bandwidth with padding; what is far behind was sent twice
    if (missing > 0x8000) return;
    this.#sequence = sequence;
    this.packets++;
    if (missing > 0) {
      this.lost += missing;
      this.#broken = true;
    }
    if (payload.length === 0) return;
    this.#stamp ??= findStamp(payload);
    if (!marker) return;
    if (this.#stamp !== undefined && !this.#broken) {
      const now = monotonic();
      this.firstFrame ||= now;
      this.delays.push(now - this.#stamp.time);
      this.frames.add(this.#stamp.frame);
    }
    this.#stamp = undefined;
    this.#broken = false;
  }
}
