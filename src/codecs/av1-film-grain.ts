import type { Av1SequenceHeader } from './av1-sequence.ts';
import type { BitReader } from './bits.ts';

/** Skips `film_grain_params()` (AV1 5.9.30) of a frame that may have some. @throws BitstreamError */
export function skipFilmGrain(reader: BitReader, sequence: Av1SequenceHeader, isInter: boolean): void {
  // apply_grain
  if (!reader.flag()) return;
  reader.skip(16);
  if (isInter && !reader.flag()) return reader.skip(3);
  const skipPoints = (): number => {
    const count = reader.read(4);
    reader.skip(16 * count);
    return count;
  };
  const lumaPoints = skipPoints();
  const { monochrome, subsamplingX, subsamplingY } = sequence;
  const fromLuma = !monochrome && reader.flag();
  const hasChroma = !(monochrome || fromLuma || (subsamplingX && subsamplingY && lumaPoints === 0));
  const [bluePoints, redPoints] = hasChroma ? [skipPoints(), skipPoints()] : [0, 0];
  // grain_scaling_minus_8
  reader.skip(2);
  const lag = reader.read(2);
  const lumaCoefficients = 2 * lag * (lag + 1);
  const chromaCoefficients = lumaCoefficients + (lumaPoints > 0 ? 1 : 0);
  if (lumaPoints > 0) reader.skip(8 * lumaCoefficients);
  for (const points of [bluePoints, redPoints]) if (fromLuma || points > 0) reader.skip(8 * chromaCoefficients);
  // ar_coeff_shift_minus_6, grain_scale_shift
  reader.skip(4);
  for (const points of [bluePoints, redPoints]) if (points > 0) reader.skip(25);
  // overlap_flag, clip_to_restricted_range
  reader.skip(2);
}
