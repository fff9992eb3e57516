import { OutputProfile } from '../../../src/config/elements/output-profile.ts';
import type { OutputProfileConfig } from '../../../src/config/model.ts';
import { readConfig } from '../../../src/config/read.ts';

/** An output profile from the management API's form, through the configuration's own checks. */
export function profile(json: object): OutputProfileConfig {
  const reading = readConfig(OutputProfile, { name: 'p', outputStreamName: '${OriginStreamName}_o', ...json });
  if (!reading.ok) throw new Error(JSON.stringify(reading.problems));
  return reading.config as OutputProfileConfig;
}
