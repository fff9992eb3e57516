import Type from 'typebox';
import { isCaptionChannel } from '../../codecs/captions/caption-decoder.ts';
import { flag, optional, parsed, repeated, text, type Fail } from '../blocks.ts';
import { unique } from '../rules.ts';

const Rendition = Type.Object({
  label: text(),
  language: Type.Optional(text()),
  autoSelect: flag(false),
  forced: flag(false),
});

/** Subtitle tracks of the streams of an application, which `:sendSubtitles` fills. */
export const Subtitles = optional(
  {
    enable: flag(false),
    defaultLabel: Type.Optional(text()),
    rendition: repeated(Rendition),
  },
  {
    rule: (subtitles: { rendition: { label: string }[] }, fail: Fail) =>
      unique(subtitles.rendition, 'label', ['rendition'], fail),
  },
);

/** Texts of data messages. */
const TEXT = /^TEXT(-[A-Za-z]{2,8})?$/;

const ToWebVtt = Type.Object({
  channel: parsed('one of CC1 to CC4, SERVICE1 to SERVICE63, TEXT, and TEXT with a language, as in TEXT-eng', (given) =>
    isCaptionChannel(given) || TEXT.test(given) ? given : undefined,
  ),
  label: text(),
});

/** Closed captions in the video, and the subtitle tracks that they are shown in as well. */
export const Captions = optional(
  { toWebVtt: repeated(ToWebVtt) },
  {
    rule: (captions: { toWebVtt: { channel: string }[] }, fail: Fail) =>
      unique(captions.toWebVtt, 'channel', ['toWebVtt'], fail),
  },
);
