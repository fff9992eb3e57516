import { parseAudioSpecificConfig } from '../../codecs/aac.ts';
import { parseAv1Config } from '../../codecs/av1.ts';
import { BitstreamError, tolerant } from '../../codecs/bits.ts';
import { parseAvcConfig } from '../../codecs/h264.ts';
import { parseHevcConfig } from '../../codecs/h265.ts';
import { parseVpcConfig } from '../../codecs/vp9.ts';
import type { AudioCodec, AudioTrack, MediaTrack, VideoCodec, VideoTrack } from '../../core/track.ts';

/** How a track is described in SDP (RFC 8866 sections 6.6, 6.15). */
export interface PayloadFormat {
  /** Encoding name of `a=rtpmap`. */
  readonly encoding: string;
  /** Ticks of the RTP timestamp in a second. */
  readonly clockRate: number;
  /** Absent where the encoding has one channel, or packets tell. */
  readonly channels?: number;
  /** Content of `a=fmtp`; absent where there is none. */
  readonly parameters?: string;
  /** Payload type that the format always has (RFC 3551 section 6); absent: a dynamic one. */
  readonly payloadType?: number;
}

const VIDEO_CLOCK = 90_000;
const OPUS_CLOCK = 48_000;
/** Clock of G.711 at its usual rate, and of G.722, whose samples are of 16 kHz (RFC 3551 section 4.5.2). */
const TELEPHONE_CLOCK = 8000;
/** Profile and level "AAC Profile, level 1" to "High Efficiency AAC v2": players go by the configuration. */
const AAC_PROFILE = 1;
const STEREO = 2;

/**
 * Describes a track for RTP with its parameters: parameter sets, profile, configuration.
 * @returns undefined for one that has no payload format, or whose configuration is malformed
 */
export function payloadFormat(track: MediaTrack): PayloadFormat | undefined {
  const config = track.config ?? Buffer.alloc(0);
  return tolerant(() =>
    track.type === 'video' ? VIDEO[track.codec](track, config) : AUDIO[track.codec](track, config),
  );
}

const VIDEO: Readonly<Record<VideoCodec, (track: VideoTrack, config: Buffer) => PayloadFormat>> = {
  H264: (_, config) => video('H264', h264(config)),
  H265: (_, config) => video('H265', h265(config)),
  AV1: (_, config) => {
    const { profile, level, tier } = parseAv1Config(config);
    return video('AV1', `profile=${profile};level-idx=${level};tier=${tier}`);
  },
  VP8: () => video('VP8'),
  VP9: (_, config) => video('VP9', config.length === 0 ? undefined : `profile-id=${parseVpcConfig(config).profile}`),
};

const AUDIO: Readonly<Record<AudioCodec, (track: AudioTrack, config: Buffer) => PayloadFormat>> = {
  AAC: ({ samplerate, channels }, config) => {
    parseAudioSpecificConfig(config);
    const parameters =
      `streamtype=5;profile-level-id=${AAC_PROFILE};mode=AAC-hbr;sizelength=13;indexlength=3;indexdeltalength=3;` +
      `config=${config.toString('hex')}`;
    return { encoding: 'mpeg4-generic', clockRate: samplerate, channels, parameters };
  },
  OPUS: ({ channels }) => {
    if (channels > STEREO) throw new BitstreamError('multichannel Opus has no payload format');
    // declared as stereo, whatever it is (RFC 7587 section 7)
    return { encoding: 'opus', clockRate: OPUS_CLOCK, channels: STEREO, parameters: `sprop-stereo=${channels - 1}` };
  },
  MP3: () => MPEG_AUDIO,
  MP2: () => MPEG_AUDIO,
  AC3: ({ samplerate, channels }) => ({ encoding: 'ac3', clockRate: samplerate, channels }),
  EAC3: ({ samplerate, channels }) => ({ encoding: 'eac3', clockRate: samplerate, channels }),
  FLAC: () => {
    throw new BitstreamError('FLAC has no payload format');
  },
  PCMA: (track) => g711('PCMA', track, 8),
  PCMU: (track) => g711('PCMU', track, 0),
  G722: ({ channels }) => {
    return { encoding: 'G722', clockRate: TELEPHONE_CLOCK, channels, ...(channels === 1 && { payloadType: 9 }) };
  },
};

const MPEG_AUDIO: PayloadFormat = { encoding: 'MPA', clockRate: VIDEO_CLOCK, payloadType: 14 };

function video(encoding: string, parameters?: string): PayloadFormat {
  return { encoding, clockRate: VIDEO_CLOCK, ...(parameters !== undefined && { parameters }) };
}

/** The static payload types are for one channel of 8 kHz. */
function g711(encoding: string, { samplerate, channels }: AudioTrack, payloadType: number): PayloadFormat {
  const isUsual = samplerate === TELEPHONE_CLOCK && channels === 1;
  return { encoding, clockRate: samplerate, channels, ...(isUsual && { payloadType }) };
}

function h264(config: Buffer): string {
  const mode = 'packetization-mode=1';
  // without sets in the configuration they are all in the packets
  if (config.length === 0) return mode;
  const { sps, pps } = parseAvcConfig(config);
  const profile = sps[0]?.subarray(1, 4).toString('hex').toUpperCase();
  if (profile === undefined) return mode;
  return `${mode};profile-level-id=${profile};sprop-parameter-sets=${base64([...sps, ...pps])}`;
}

function h265(config: Buffer): string | undefined {
  if (config.length === 0) return undefined;
  const { vps, sps, pps } = parseHevcConfig(config);
  const sets = Object.entries({ vps, sps, pps }).filter(([, units]) => units.length > 0);
  return sets.map(([name, units]) => `sprop-${name}=${base64(units)}`).join(';');
}

function base64(units: readonly Buffer[]): string {
  return units.map((unit) => unit.toString('base64')).join(',');
}
