import type { CaptionServices } from '../../../core/captions/caption-services.ts';
import type { SubtitleTrack } from '../../../core/track.ts';
import { describeLanguage } from './language.ts';
import { quotable } from './subtitles.ts';

/** Group of the closed captions of a master playlist. */
const GROUP = 'captions';
/** Version that a playlist with a service of CEA-708 has (RFC 8216bis, 8). */
const SERVICE_VERSION = 7;

/** Closed captions that a stream's video has, and the subtitle track with the same text, whose label and language they get. */
export interface ListedCaptions {
  readonly services: Pick<CaptionServices, 'carried' | 'channels'>;
  readonly trackOf: (channel: string) => SubtitleTrack | undefined;
}

/** Lists the channels of closed captions (EXT-X-MEDIA, RFC 8216bis 4.4.6.1); '' for none. */
export function captionMembers({ services: { channels }, trackOf }: ListedCaptions): string {
  const names = new Set<string>();
  const languages = new Set<string | undefined>();
  return channels
    .map((channel) => {
      const { publicName = channel, language } = trackOf(channel) ?? {};
      const { tag } = describeLanguage(language);
      const label = quotable(publicName);
      const name = names.has(label) ? `${label} (${channel})` : label;
      // a player can tell members apart that it may select by itself
      const isFirst = !languages.has(tag);
      names.add(name);
      languages.add(tag);
      const spoken = tag === undefined ? '' : `,LANGUAGE="${tag}"`;
      const selected = `DEFAULT=NO,AUTOSELECT=${isFirst ? 'YES' : 'NO'}`;
      return `#EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID="${GROUP}",NAME="${name}",${selected}${spoken},INSTREAM-ID="${channel}"\n`;
    })
    .join('');
}

/**
 * CLOSED-CAPTIONS of each variant, after a comma. NONE where no frame carried any: without it players look for captions in a segment,
 * which a young stream may not have (Shaka Player). '' where frames carry some, but no channel had text yet: it may come.
 * @param hasVideo whether a variant has video
 */
export function captionsOf({ services: { carried, channels } }: ListedCaptions, hasVideo: boolean): string {
  if (channels.length > 0) return `,CLOSED-CAPTIONS="${GROUP}"`;
  return carried || !hasVideo ? '' : ',CLOSED-CAPTIONS=NONE';
}

/** EXT-X-VERSION of a master playlist. @param version without captions */
export function withCaptions(version: number, { services: { channels } }: ListedCaptions): number {
  return channels.some((channel) => channel.startsWith('SERVICE')) ? Math.max(version, SERVICE_VERSION) : version;
}
