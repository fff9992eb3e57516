import { BitstreamError } from '../codecs/bits.ts';
import type { Logger } from '../log/log.ts';
import { chooseDecoder, chooseEncoder, type Choice, type Offer } from './module-choice.ts';
import { readExtraOptions } from './encoders/extra-options.ts';
import type { EncodeJob } from './encoding.ts';
import { nutStreamOf } from './nut-stream.ts';
import { canMapTones, isHdr } from './tone-filter.ts';

export interface CodecChoice {
  readonly encoder: Choice;
  readonly decoder: Choice;
  /** Whether this ffmpeg can map HDR to SDR. */
  readonly mapsTones: boolean;
}

/**
 * Chooses encoder and decoder of a job.
 * @param offer undefined without an ffmpeg
 * @returns the choice, or the reason why there is none
 */
export function chooseCodecs(
  { from, encoding }: EncodeJob,
  offer: Offer | undefined,
  log: Logger,
): CodecChoice | string {
  if (offer === undefined) return 'ffmpeg was not found';
  const decoding = chooseDecoder(from.codec, offer);
  if ('reason' in decoding) return decoding.reason;
  const chosen = chooseEncoder(encoding.codec, encoding.type === 'image' ? undefined : encoding.modules, offer);
  if ('reason' in chosen) return chosen.reason;
  const { passedOver, choice: encoder } = chosen;
  const module = encoder.name;
  if (passedOver.length > 0)
    log.warn(
      { passedOver, module },
      'the configured encoder modules cannot be used on this machine: using another one',
    );
  const extraOptions = encoding.type === 'video' ? encoding.extraOptions : undefined;
  const { refused } = readExtraOptions(extraOptions, encoder.ffmpegName);
  if (refused.length > 0)
    log.warn({ refused, module }, 'these ExtraOptions are not allowed for this encoder and are ignored');
  try {
    nutStreamOf(from);
  } catch (error) {
    if (error instanceof BitstreamError) return `the input cannot be decoded: ${error.message}`;
    throw error;
  }
  const mapsTones = canMapTones(offer.capabilities.filters);
  if (from.type === 'video' && isHdr(from) && !mapsTones)
    log.warn(
      { module, codec: encoding.codec },
      'the source is HDR, and this ffmpeg has no filters (zscale, tonemap) to map it to SDR: what is encoded stays HDR in 8 bits',
    );
  return { encoder, decoder: decoding.choice, mapsTones };
}
