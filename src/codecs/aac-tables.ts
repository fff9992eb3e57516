/** By samplingFrequencyIndex (table 1.18). */
export const SAMPLERATES: readonly number[] = Object.freeze([
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8000, 7350,
]);
/** By channelConfiguration (table 1.19); 0 where reserved or given elsewhere. */
export const CHANNELS: readonly number[] = Object.freeze([0, 1, 2, 3, 4, 5, 6, 8, 0, 0, 0, 7, 8, 24, 8, 0]);
