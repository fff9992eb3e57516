import type { HlsPublisherConfig } from '../../../config/model.ts';
import { MAX_BREAK_MS } from '../../../core/cue.ts';
import { assetUrl } from '../../../core/interstitial.ts';
import { fillMacros } from '../../../lib/macros.ts';
import type { BreaksOptions } from '../../../packaging/breaks.ts';

interface Names {
  readonly vhost: string;
  readonly app: string;
  readonly stream: string;
}

/**
 * Makes the interstitials of the breaks that SCTE-35 begins, as an application has them: players ask the asset list of a break, and a
 * break of known length ends with it. Returns undefined for an application without.
 * @param onFault called with the URL of an asset list that is left out, since it is too long with its values filled in
 */
export function spliceInterstitials(
  config: HlsPublisherConfig['interstitials'],
  { vhost, app, stream }: Names,
  onFault: (url: string) => void,
): BreaksOptions['interstitialFor'] {
  if (config === undefined) return undefined;
  const snap = [...new Set(config.snap)];
  const restrict = [...new Set(config.restrict)];
  return ({ eventId, durationMs, date }) => {
    const values = new Map([
      ['VHostName', vhost],
      ['AppName', app],
      ['StreamName', stream],
      ['EventId', String(eventId ?? '')],
      ['DurationMs', String(durationMs ?? '')],
      ['StartDate', new Date(date).toISOString()],
    ]);
    const encoded = (name: string): string | undefined => {
      const value = values.get(name);
      return value === undefined ? undefined : encodeURIComponent(value);
    };
    const filled = fillMacros(config.assetList, encoded);
    const assetList = assetUrl(filled);
    if (assetList === undefined) {
      onFault(filled);
      return undefined;
    }
    const length = durationMs === undefined || durationMs > MAX_BREAK_MS ? undefined : durationMs;
    return {
      assetList,
      // the stream goes on where the break ends, also if what was shown is shorter
      ...(length !== undefined && { duration: length, resumeOffset: length, playoutLimit: length }),
      ...(snap.length > 0 && { snap }),
      ...(restrict.length > 0 && { restrict }),
    };
  };
}
