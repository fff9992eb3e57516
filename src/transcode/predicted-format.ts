import { buildOpusConfig } from '../codecs/opus.ts';
import type { EncodedFormat } from './encode.ts';
import type { EncodeJob } from './encoding.ts';
import type { CodecChoice } from './codec-choice.ts';

const OPUS_RATE = 48_000;
/** Samples that libopus looks ahead with `-application audio` (encoders/audio.ts): 2.5 ms of its codec and 4 ms of its own. */
const OPUS_LOOKAHEAD = 312;

/** Predicts the format that an encoder will report; undefined if that is unknown before it runs. */
export function predictedFormat({ encoding }: EncodeJob, { encoder }: CodecChoice): EncodedFormat | undefined {
  if (encoding.type !== 'audio' || encoder.ffmpegName !== 'libopus' || encoding.channels > 2) return undefined;
  const { channels } = encoding;
  const config = buildOpusConfig({
    channels,
    preSkip: OPUS_LOOKAHEAD,
    inputSamplerate: OPUS_RATE,
    outputGain: 0,
    mappingFamily: 0,
    mapping: undefined,
  });
  const timebase = { num: 1, den: OPUS_RATE };
  return { timebase, config, samplerate: OPUS_RATE, channels, module: encoder.module };
}
