import type { Init, Part, Segment } from '../../../packaging/segment.ts';
import type { Media } from '../answer/played-stream.ts';
import { pathOf } from './names.ts';
import type { Rendition } from './rendition.ts';

export type LlhlsResource =
  | { readonly kind: 'list'; readonly rendition: Rendition }
  | (Media & { readonly rendition: Rendition })
  /** The next part, which a preload hint announces. */
  | { readonly kind: 'hint'; readonly rendition: Rendition };

/** Files of a stream by name: those in playlists, and the part that each playlist hints at. */
export class Files {
  readonly #files = new Map<string, LlhlsResource>();
  readonly #hinted = new Map<Rendition, string>();

  get(name: string): LlhlsResource | undefined {
    return this.#files.get(name);
  }

  /** Follows the files of a rendition until it is dropped. */
  add(rendition: Rendition): void {
    const {
      names,
      packager: { window, init },
    } = rendition;
    this.#put(names.chunklist(), { kind: 'list', rendition });
    this.#putInit(rendition, init);
    window.on('init', (next) => this.#putInit(rendition, next));
    window.on('part', (segment, part) => this.#onPart(rendition, segment, part));
    window.on('complete', (segment) => this.#onComplete(rendition, segment));
    window.on('evicted', (segment) => this.#onEvicted(rendition, segment));
  }

  drop(rendition: Rendition): void {
    rendition.packager.window.removeAllListeners();
    this.#hinted.delete(rendition);
    for (const [name, resource] of this.#files) if (resource.rendition === rendition) this.#files.delete(name);
  }

  /** Withdraws the hints, since no more parts follow. */
  conclude(): void {
    for (const rendition of [...this.#hinted.keys()]) this.#dropHint(rendition);
  }

  #putInit(rendition: Rendition, init: Init): void {
    this.#putMedia(rendition.names.init(init), 'init', rendition, [init.data]);
  }

  #onPart(rendition: Rendition, { msn }: Segment, { index, data }: Part): void {
    this.#putMedia(rendition.names.part(msn, index), 'part', rendition, [data]);
    this.#putHint(rendition);
  }

  #onComplete(rendition: Rendition, { msn, parts, gap }: Segment): void {
    const { names } = rendition;
    if (!gap)
      this.#putMedia(
        names.segment(msn),
        'segment',
        rendition,
        parts.map(({ data }) => data),
      );
    this.#putHint(rendition);
  }

  #onEvicted({ names, packager: { window } }: Rendition, { msn, parts, init }: Segment): void {
    this.#files.delete(pathOf(names.segment(msn)));
    for (const { index } of parts) this.#files.delete(pathOf(names.part(msn, index)));
    const name = names.init(init);
    // another initialization may have the same name, where names are made from the content
    const isSame = (other: Segment): boolean => other.init === init || names.init(other.init) === name;
    const inUse = (window.open !== undefined && isSame(window.open)) || window.kept.some(isSame);
    if (!inUse) this.#files.delete(pathOf(name));
  }

  #putMedia(name: string, kind: Media['kind'], rendition: Rendition, body: readonly Buffer[]): void {
    this.#put(name, { kind, rendition, type: rendition.packager.track.type, body });
  }

  #putHint(rendition: Rendition): void {
    const { next } = rendition.packager.window;
    if (next === undefined) return;
    this.#dropHint(rendition);
    const name = pathOf(rendition.names.part(next.msn, next.part));
    this.#hinted.set(rendition, name);
    this.#put(name, { kind: 'hint', rendition });
  }

  #dropHint(rendition: Rendition): void {
    const before = this.#hinted.get(rendition);
    if (before !== undefined && this.#files.get(before)?.kind === 'hint') this.#files.delete(before);
    this.#hinted.delete(rendition);
  }

  #put(name: string, resource: LlhlsResource): void {
    this.#files.set(pathOf(name), resource);
  }
}
