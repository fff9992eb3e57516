import nodeDataChannel, { type PeerConnection, type Track } from 'node-datachannel';
import { parseAvcConfig } from '../../../src/codecs/h264.ts';
import { joinNals } from '../../../src/codecs/nal.ts';
import { toSeconds } from '../../../src/core/timebase.ts';
import type { MediaTrack } from '../../../src/core/track.ts';
import { createPacketizer } from '../../../src/protocols/rtp/packetizer.ts';
import { writeSenderReport } from '../../../src/protocols/rtp/rtcp.ts';
import { RtpSender } from '../../../src/protocols/rtp/sender.ts';
import { inRealTime } from '../time/real-time.ts';
import type { Media } from './webrtc-media.ts';

const {
  PeerConnection: Peer,
  Video,
  Audio,
  RtpPacketizationConfig,
  H264RtpPacketizer,
  RtpPacketizer,
  RtcpSrReporter,
  RtcpNackResponder,
} = nodeDataChannel;

export interface WhipPeerOptions {
  readonly media: readonly Media<MediaTrack>[];
  /** Payload types, by codec; those of `TYPES` unless given. */
  readonly types?: Readonly<Record<string, number>>;
  /** Mids, in the order of the media; `v` and `a` unless given. */
  readonly mids?: readonly string[];
  /** Reports tell when media was taken, as browsers' do, and not when it was sent. */
  readonly exactReports?: boolean;
  /** Milliseconds by which sound is sent after the picture of the same time, though reports tell when both were taken. */
  readonly lateSoundMs?: number;
  /** What is sent in place of the first of the media, once: packets of RTP and RTCP as they are. */
  readonly raw?: readonly Uint8Array[];
}

/** The sender's clock may be anything. */
const EPOCH_MS = 1_000_000_000_000;
const TYPES: Readonly<Record<string, number>> = { H264: 96, VP8: 97, VP9: 98, OPUS: 111 };
const PROFILE = 'profile-level-id=42e01f;packetization-mode=1;level-asymmetry-allowed=1';
const NALU_LENGTH = 'Length';

/** A WebRTC publisher of libdatachannel, which plays media in a loop in real time as soon as it is connected. */
export class WhipPeer {
  readonly #options: WhipPeerOptions;
  readonly #connection: PeerConnection = new Peer('publisher', { iceServers: [] });
  /** A track whose object is collected goes silent. */
  readonly #tracks: Track[] = [];
  readonly #gathered: Promise<void>;
  #stops: (() => void)[] = [];

  constructor(options: WhipPeerOptions, onState: (state: string) => void) {
    this.#options = options;
    this.#connection.onStateChange(onState);
    this.#gathered = new Promise((done) => {
      this.#connection.onGatheringStateChange((state) => state === 'complete' && done());
    });
  }

  /** The offer with all candidates. */
  async offer(): Promise<string> {
    this.#addTracks();
    this.#connection.setLocalDescription();
    return this.#local();
  }

  /** Takes an offer; the answer with all candidates. */
  answerTo(sdp: string): Promise<string> {
    this.#addTracks();
    this.#connection.setRemoteDescription(sdp, 'offer');
    return this.#local();
  }

  answer(sdp: string): void {
    this.#connection.setRemoteDescription(sdp, 'answer');
  }

  close(): void {
    for (const stop of this.#stops) stop();
    this.#stops = [];
    // what hears of a track stays in memory until it is closed
    for (const track of this.#tracks.splice(0)) track.close();
    this.#connection.close();
  }

  async #local(): Promise<string> {
    await this.#gathered;
    return this.#connection.localDescription()?.sdp ?? '';
  }

  #addTracks(): void {
    const { media, types = TYPES, mids = [], lateSoundMs = 0, exactReports = false, raw } = this.#options;
    for (const [index, one] of media.entries()) {
      const { type, codec } = one.track;
      const payloadType = types[codec] ?? 100 + index;
      const section =
        type === 'video' ? new Video(mids[index] ?? 'v', 'SendOnly') : new Audio(mids[index] ?? 'a', 'SendOnly');
      if (section instanceof Audio) section.addOpusCodec(payloadType);
      else if (codec === 'H264') section.addH264Codec(payloadType, PROFILE);
      else if (codec === 'H265') section.addH265Codec(payloadType);
      else if (codec === 'VP8') section.addVP8Codec(payloadType);
      else if (codec === 'AV1') section.addAV1Codec(payloadType);
      else section.addVP9Codec(payloadType);
      const ssrc = 1000 + index;
      section.addSSRC(ssrc, 'publisher', 'stream', type);
      const track = this.#connection.addTrack(section);
      this.#tracks.push(track);
      if (raw !== undefined && index === 0) {
        track.onOpen(() => this.#stops.push(sendRaw(track, raw)));
        continue;
      }
      const isKnown = codec === 'H264' || codec === 'OPUS';
      // libdatachannel reports when it sent something, and not when that was taken
      const play = isKnown && lateSoundMs === 0 && !exactReports ? playFrames : playPackets;
      const { send } = play(track, one, ssrc, payloadType);
      // packets of our own, too, are sent again when they are asked for
      if (exactReports) track.setMediaHandler(new RtcpNackResponder());
      track.onOpen(() => {
        const late = type === 'audio' ? lateSoundMs : 0;
        setTimeout(() => {
          // the other end may close it at any time
          if (track.isOpen()) this.#stops.push(loop(one, (...frame) => track.isOpen() && send(...frame)));
        }, late);
      });
    }
  }
}

const RAW_AT_ONCE = 50;

function sendRaw(track: Track, packets: readonly Uint8Array[]): () => void {
  let at = 0;
  const timer = setInterval(() => {
    for (const end = at + RAW_AT_ONCE; at < Math.min(end, packets.length); at++) {
      try {
        if (track.isOpen()) track.sendMessageBinary(Buffer.from(packets[at] as Uint8Array));
      } catch (error) {
        // what is sent twice, or is no RTP, the sender's own SRTP does not let out
        if (!String(error).includes('SRTP')) throw error;
      }
    }
    if (at >= packets.length) clearInterval(timer);
  }, 5);
  return () => clearInterval(timer);
}

type Send = (data: Buffer, key: boolean, rtpTime: number) => unknown;

function loop({ track, frames }: Media<MediaTrack>, send: Send): () => void {
  let ticks = 0;
  const units = frames.map((frame) => {
    const unit = { ...frame, time: toSeconds(ticks, track.timebase) * 1000 };
    ticks += frame.duration;
    return unit;
  });
  return inRealTime(units, toSeconds(ticks, track.timebase) * 1000, ({ data, key, delay }, time) => {
    send(
      data,
      key,
      Math.round((time / 1000 + toSeconds(delay, track.timebase)) * (track.type === 'video' ? 90_000 : 48_000)),
    );
  });
}

/** libdatachannel packetizes, reports, and sends again what is asked for. */
function playFrames(
  track: Track,
  { track: { codec, config } }: Media<MediaTrack>,
  ssrc: number,
  payloadType: number,
): { send: Send } {
  const clockRate = codec === 'H264' ? 90_000 : 48_000;
  const rtp = new RtpPacketizationConfig(ssrc, 'publisher', payloadType, clockRate);
  const packetizer = codec === 'H264' ? new H264RtpPacketizer(NALU_LENGTH, rtp) : new RtpPacketizer(rtp);
  packetizer.addToChain(new RtcpSrReporter(rtp));
  packetizer.addToChain(new RtcpNackResponder());
  track.setMediaHandler(packetizer);
  const start = rtp.timestamp;
  const sets = codec === 'H264' && config !== undefined ? parameterSets(config) : [];
  return {
    send: (data, key, rtpTime) => {
      rtp.timestamp = (start + rtpTime) >>> 0;
      sendOn(track, key && sets.length > 0 ? Buffer.concat([joinNals(sets), data]) : data);
    },
  };
}

function parameterSets(config: Buffer): Buffer[] {
  const { sps, pps } = parseAvcConfig(config);
  return [...sps, ...pps];
}

const REPORT_MS = 500;

/** The other end may close it at any time, in the midst of a frame too. */
function sendOn(track: Track, data: Buffer): void {
  try {
    track.sendMessageBinary(data);
  } catch (error) {
    if (track.isOpen()) throw error;
  }
}

/** Packets and reports of our own. Reports tell that all media was taken at the time that it has. */
function playPackets(
  track: Track,
  { track: source }: Media<MediaTrack>,
  ssrc: number,
  payloadType: number,
): { send: Send } {
  const { codec, type } = source;
  const clockRate = type === 'video' ? 90_000 : 48_000;
  let reported = -Infinity;
  const sender = new RtpSender({ payloadType, ssrc, sequence: 65_500, output: (packet) => sendOn(track, packet) });
  const packetizer = createPacketizer(codec);
  return {
    send: (data, key, rtpTime) => {
      sender.timestamp = (4_294_900_000 + rtpTime) >>> 0;
      packetizer.packetize({ track: source, dts: 0, pts: 0, duration: 0, key, data }, sender);
      const mediaMs = (rtpTime / clockRate) * 1000;
      if (mediaMs < reported + REPORT_MS) return;
      reported = mediaMs;
      const { timestamp, packets, octets } = sender;
      sendOn(
        track,
        writeSenderReport({
          ssrc,
          wallMs: EPOCH_MS + mediaMs,
          rtpTime: timestamp,
          packets,
          octets,
          cname: 'publisher',
        }),
      );
    },
  };
}
