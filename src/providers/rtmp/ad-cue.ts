import { MAX_BREAK_MS } from '../../core/cue.ts';
import { isAmfObject, type AmfValue } from '../../protocols/rtmp/amf-value.ts';

/** An ad break, as the CUE codec has it, and how long before it was announced. */
export interface AdCue {
  readonly cueType: 'out' | 'in';
  /** Milliseconds, of `out`. */
  readonly duration?: number;
  readonly prerollMs: number;
}

const TYPE = 'com.youtube.cuepoint';

/**
 * Reads the values of `onCuePoint` as YouTube specifies them for ad breaks: `type`, `cue_point_start`,
 * `break_duration_sec`, `pre_roll_time_sec`. Undefined for any other cue point.
 */
export function readAdCue([properties]: readonly AmfValue[]): AdCue | undefined {
  if (properties === undefined || !isAmfObject(properties) || properties.type !== TYPE) return undefined;
  const prerollMs = milliseconds(properties.pre_roll_time_sec);
  if (properties.cue_point_start === false || properties.cue_point_start === 0) return { cueType: 'in', prerollMs };
  const duration = milliseconds(properties.break_duration_sec);
  return duration > 0 ? { cueType: 'out', duration, prerollMs } : undefined;
}

function milliseconds(seconds: AmfValue): number {
  return typeof seconds === 'number' && seconds > 0 && seconds <= MAX_BREAK_MS / 1000 ? Math.round(seconds * 1000) : 0;
}
