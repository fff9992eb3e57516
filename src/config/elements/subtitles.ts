import Type from 'typebox';
import { flag, optional, repeated, text, type Fail } from '../blocks.ts';
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
