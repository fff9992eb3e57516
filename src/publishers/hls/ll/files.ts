import type { Init, Part, Segment } from '../../../packaging/segment.ts';
import type { Media } from '../answer/played-stream.ts';
import { pathOf } from './names.ts';
import type { AnyRendition } from './rendition.ts';

export type LlhlsResource =
  | { readonly kind: 'list'; readonly rendition: AnyRendition }
  | (Media & { readonly rendition: AnyRendition })
  /** The next part, which a preload hint announces. */
  | { readonly kind: 'hint'; readonly rendition: AnyRendition };

/** Files of a stream by name: those in playlists, and the part that each playlist hints at. */
export class Files {
  readonly #files = new Map<string, LlhlsResource>();
  readonly #hinted = new Map<AnyRendition, string>();

  get(name: string): LlhlsResource | undefined {
    return this.#files.get(name);
  }

  /** Follows the files of a rendition until it is dropped. */
  add(rendition: AnyRendition): void {
    const { names, packager } = rendition;
    const { window } = packager;
    this.#put(names.chunklist(), { kind: 'list', rendition });
    if ('init' in packager) this.#putInit(rendition, packager.init);
    window.on('init', (next) => this.#putInit(rendition, next));
    window.on('part', (segment, part) => this.#onPart(rendition, segment, part));
    window.on('complete', (segment) => this.#onComplete(rendition, segment));
    window.on('evicted', (segment) => this.#onEvicted(rendition, segment));
  }

  drop(rendition: AnyRendition): void {
    rendition.packager.window.removeAllListeners();
    this.#hinted.delete(rendition);
    for (const [name, resource] of this.#files) if (resource.rendition === rendition) this.#files.delete(name);
  }

  /** Withdraws the hints, since no more parts follow. */
  conclude(): void {
    for (const rendition of [...this.#hinted.keys()]) this.#dropHint(rendition);
  }

  #putInit(rendition: AnyRendition, init: Init): void {
    const name = rendition.names.init?.(init);
    if (name !== undefined) this.#putMedia(name, 'init', rendition, [init.data]);
  }

  #onPart(rendition: AnyRendition, { msn }: Segment, { index, data }: Part): void {
    this.#putMedia(rendition.names.part(msn, index), 'part', rendition, [data]);
    this.#putHint(rendition);
  }

  #onComplete(rendition: AnyRendition, segment: Segment): void {
    const name = rendition.names.segment(segment.msn);
    if (!segment.gap) this.#putMedia(name, 'segment', rendition, rendition.body(segment));
    this.#putHint(rendition);
  }

  #onEvicted({ names, packager: { window } }: AnyRendition, { msn, parts, init }: Segment): void {
    this.#files.delete(pathOf(names.segment(msn)));
    for (const { index } of parts) this.#files.delete(pathOf(names.part(msn, index)));
    const name = names.init?.(init);
    if (name === undefined) return;
    // another initialization may have the same name, where names are made from the content
    const isSame = (other: Segment): boolean => other.init === init || names.init?.(other.init) === name;
    const inUse = (window.open !== undefined && isSame(window.open)) || window.kept.some(isSame);
    if (!inUse) this.#files.delete(pathOf(name));
  }

  #putMedia(name: string, kind: Media['kind'], rendition: AnyRendition, body: readonly Buffer[]): void {
    this.#put(name, { kind, rendition, type: rendition.packager.track.type, body });
  }

  #putHint(rendition: AnyRendition): void {
    const { next } = rendition.packager.window;
    if (next === undefined) return;
    this.#dropHint(rendition);
    const name = pathOf(rendition.names.part(next.msn, next.part));
    this.#hinted.set(rendition, name);
    this.#put(name, { kind: 'hint', rendition });
  }

  #dropHint(rendition: AnyRendition): void {
    const before = this.#hinted.get(rendition);
    if (before !== undefined && this.#files.get(before)?.kind === 'hint') this.#files.delete(before);
    this.#hinted.delete(rendition);
  }

  #put(name: string, resource: LlhlsResource): void {
    this.#files.set(pathOf(name), resource);
  }
}
