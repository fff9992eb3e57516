import { CHANNELS, SAMPLERATES } from './aac-tables.ts';
import { BitReader, BitstreamError, BitWriter } from './bits.ts';

/** @public */
export { adtsFrames, buildAdtsHeader } from './aac-adts.ts';

/** Content of an AudioSpecificConfig (ISO/IEC 14496-3 1.6.2.1). */
export interface AacConfig {
  /** Audio object type of the coded stream: 2 is AAC LC, also inside HE-AAC. */
  readonly objectType: number;
  /** Sampling rate of the core, before any SBR. */
  readonly samplerate: number;
  /** 0 where a program config element gives the channels. */
  readonly channelConfiguration: number;
  readonly channels: number;
  /** Samples of a frame at the core's rate. */
  readonly samplesPerFrame: 1024 | 960;
  /** Spectral band replication, signalled explicitly: HE-AAC. */
  readonly sbr: boolean;
  /** Parametric stereo, signalled explicitly: HE-AAC v2. */
  readonly ps: boolean;
  /** Rate of the decoder's output: with SBR, that of the extension; its channels: with PS, two. */
  readonly outputSamplerate: number;
  readonly outputChannels: number;
}

const AAC_LC = 2;
const SBR = 5;
const PS = 29;
const ESCAPED_RATE = 15;
const SYNC_SBR = 0x2b7;
const SYNC_PS = 0x548;
/** Object types whose config is a GASpecificConfig (table 1.17) and that this server carries. */
const GENERAL_AUDIO = new Set([1, 2, 3, 4, 6]);
const SCALABLE = 6;

/**
 * Reads an AudioSpecificConfig, also with explicit SBR and PS, hierarchical or after a sync word.
 * @throws BitstreamError, also for object types that are not AAC
 */
export function parseAudioSpecificConfig(config: Buffer): AacConfig {
  const reader = new BitReader(config);
  const core = readAudioSpecificConfig(reader);
  if (
    core.sbr ||
    reader.bitsLeft < 16 ||
    reader.read(11) !== SYNC_SBR ||
    readObjectType(reader) !== SBR ||
    !reader.flag()
  )
    return core;
  const outputSamplerate = readSamplerate(reader);
  const ps = reader.bitsLeft >= 12 && reader.read(11) === SYNC_PS && reader.flag();
  return { ...core, sbr: true, ps, outputSamplerate, outputChannels: ps && core.channels === 1 ? 2 : core.channels };
}

/**
 * Reads an AudioSpecificConfig within other bits, up to its end. It does not look for SBR and PS after a sync word: they can
 * only be found by the end of the data.
 * @throws BitstreamError, also for object types that are not AAC
 */
export function readAudioSpecificConfig(reader: BitReader): AacConfig {
  let objectType = readObjectType(reader);
  const samplerate = readSamplerate(reader);
  const channelConfiguration = reader.read(4);
  const ps = objectType === PS;
  const sbr = ps || objectType === SBR;
  const outputSamplerate = sbr ? readSamplerate(reader) : samplerate;
  if (sbr) objectType = readObjectType(reader);
  if (!GENERAL_AUDIO.has(objectType)) throw new BitstreamError(`audio object type ${objectType} is not AAC`);
  const general = readGeneralAudio(reader, objectType, channelConfiguration);
  return {
    objectType,
    samplerate,
    channelConfiguration,
    ...general,
    sbr,
    ps,
    outputSamplerate,
    outputChannels: ps && general.channels === 1 ? 2 : general.channels,
  };
}

/**
 * Writes an AudioSpecificConfig with a standard channel configuration; SBR and PS are signalled hierarchically.
 * @public
 * @throws BitstreamError when no channel configuration has that many channels
 */
export function buildAudioSpecificConfig(
  config: Pick<AacConfig, 'samplerate' | 'channels'> &
    Partial<Pick<AacConfig, 'objectType' | 'samplesPerFrame' | 'sbr' | 'ps' | 'outputSamplerate'>>,
): Buffer {
  const { objectType = AAC_LC, samplerate, channels, samplesPerFrame = 1024, sbr = false, ps = false } = config;
  const channelConfiguration = channels > 0 ? CHANNELS.indexOf(channels) : -1;
  if (channelConfiguration < 0) throw new BitstreamError(`AAC has no configuration of ${channels} channels`);
  const writer = new BitWriter();
  writer.write(ps ? PS : sbr ? SBR : objectType, 5);
  writeSamplerate(writer, samplerate);
  writer.write(channelConfiguration, 4);
  if (sbr || ps) {
    writeSamplerate(writer, config.outputSamplerate ?? samplerate * 2);
    writer.write(objectType, 5);
  }
  writer.flag(samplesPerFrame === 960).write(0, 2);
  return writer.finish();
}

/** Codec of RFC 6381: `mp4a.40.2`, or `.5` and `.29` with explicit SBR and PS. */
export function codecString({ objectType, sbr, ps }: Pick<AacConfig, 'objectType' | 'sbr' | 'ps'>): string {
  return `mp4a.40.${ps ? PS : sbr ? SBR : objectType}`;
}

function readObjectType(reader: BitReader): number {
  const type = reader.read(5);
  return type === 31 ? 32 + reader.read(6) : type;
}

function readSamplerate(reader: BitReader): number {
  const index = reader.read(4);
  const rate = index === ESCAPED_RATE ? reader.read(24) : (SAMPLERATES[index] ?? 0);
  if (rate === 0) throw new BitstreamError('a reserved AAC sampling rate');
  return rate;
}

function writeSamplerate(writer: BitWriter, rate: number): void {
  const index = SAMPLERATES.indexOf(rate);
  if (index >= 0) writer.write(index, 4);
  else writer.write(ESCAPED_RATE, 4).write(rate, 24);
}

/** GASpecificConfig (4.4.1). */
function readGeneralAudio(
  reader: BitReader,
  objectType: number,
  channelConfiguration: number,
): Pick<AacConfig, 'channels' | 'samplesPerFrame'> {
  const samplesPerFrame = reader.flag() ? 960 : 1024;
  if (reader.flag()) reader.skip(14);
  const extension = reader.flag();
  const channels =
    channelConfiguration === 0 ? readProgramChannels(reader) : (CHANNELS[channelConfiguration] as number);
  if (channels === 0) throw new BitstreamError('a reserved AAC channel configuration');
  if (objectType === SCALABLE) reader.skip(3);
  if (extension) reader.skip(1);
  return { channels, samplesPerFrame };
}

/** Counts the channels of a program_config_element (4.4.1.1), and reads to its end. */
function readProgramChannels(reader: BitReader): number {
  reader.skip(10);
  const elements = [reader.read(4), reader.read(4), reader.read(4)];
  const lfe = reader.read(2);
  const data = reader.read(3);
  const coupling = reader.read(4);
  if (reader.flag()) reader.skip(4);
  if (reader.flag()) reader.skip(4);
  if (reader.flag()) reader.skip(3);
  let channels = lfe;
  for (const count of elements) {
    for (let i = 0; i < count; i++) {
      channels += reader.flag() ? 2 : 1;
      reader.skip(4);
    }
  }
  reader.skip(4 * lfe + 4 * data + 5 * coupling);
  reader.align();
  reader.skip(8 * reader.read(8));
  return channels;
}
