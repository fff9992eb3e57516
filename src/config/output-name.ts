import type { OutputProfileConfig } from './model.ts';

const ORIGIN_MACRO = '${OriginStreamName}';

export function outputName(profile: Pick<OutputProfileConfig, 'outputStreamName'>, inputName: string): string {
  return profile.outputStreamName.replaceAll(ORIGIN_MACRO, () => inputName);
}
