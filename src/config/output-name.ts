import type { OutputProfileConfig } from './model.ts';

const ORIGIN_MACRO = '${OriginStreamName}';

/** Name of the output stream that a profile makes of an input stream. */
export function outputName(profile: Pick<OutputProfileConfig, 'outputStreamName'>, inputName: string): string {
  return profile.outputStreamName.replaceAll(ORIGIN_MACRO, () => inputName);
}
