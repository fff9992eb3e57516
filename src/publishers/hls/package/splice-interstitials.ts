import type { HlsPublisherConfig } from '../../../config/model.ts';
import { interstitial, InterstitialError } from '../../../core/interstitial.ts';
import type { BreaksOptions } from '../../../packaging/breaks.ts';
import { fillMacros } from './macros.ts';

interface Names {
  readonly vhost: string;
  readonly app: string;
  readonly stream: string;
}

/**
 * The interstitials of the breaks that SCTE-35 begins, as an application has them; undefined for none. Players ask the asset list of a
 * break, which is not longer than the break. A URL that is too long with its values filled in is left out, and logged.
 */
export function spliceInterstitials(
  config: HlsPublisherConfig['interstitials'],
  { vhost, app, stream }: Names,
  onFault: (reason: string) => void,
): BreaksOptions['interstitialFor'] {
  if (config === undefined) return undefined;
  const names = { VHostName: vhost, AppName: app, StreamName: stream };
  const { assetList, snap, restrict } = config;
  return ({ eventId, durationMs, date }) => {
    const values = {
      ...names,
      EventId: String(eventId ?? ''),
      DurationMs: String(durationMs ?? ''),
      StartDate: new Date(date).toISOString(),
    };
    const encoded = Object.fromEntries(
      Object.entries(values).map(([name, value]) => [name, encodeURIComponent(value)]),
    );
    try {
      return interstitial({
        assetList: fillMacros(assetList, encoded),
        ...(durationMs !== undefined && {
          duration: durationMs,
          // the stream goes on where the break ends, also if what was shown is shorter
          resumeOffset: durationMs,
          playoutLimit: durationMs,
        }),
        ...(snap.length > 0 && { snap: snap.map((one) => one.toLowerCase()) }),
        ...(restrict.length > 0 && { restrict: restrict.map((one) => one.toLowerCase()) }),
      });
    } catch (error) {
      if (!(error instanceof InterstitialError)) throw error;
      onFault(error.message);
      return undefined;
    }
  };
}
