import { Figures, type Reception } from './figures.ts';
import type { Report } from './report.ts';

/** Renditions of one stream with figures of their own. */
const MAX_RENDITIONS = 32;

/** Names of an output stream. */
export interface StreamNames {
  readonly vhost: string;
  readonly app: string;
  readonly stream: string;
}

/** Something that plays a stream, until it has ended. */
export interface Source {
  readonly ended: boolean;
}

/** Figures of one output stream at this node. */
export class StreamQuality {
  readonly names: StreamNames;
  readonly all = new Figures();
  readonly #renditions = new Map<string, Figures>();
  #sources: readonly Source[] = [];

  constructor(names: StreamNames) {
    this.names = names;
  }

  get renditions(): ReadonlyMap<string, Figures> {
    return this.#renditions;
  }

  /** Whether everything that has played the stream here has ended. */
  get ended(): boolean {
    return this.#sources.every(({ ended }) => ended);
  }

  follow(source: Source): void {
    this.#sources = [...this.#sources.filter(({ ended }) => !ended), source];
  }

  /** @param rendition undefined for a report about none in particular */
  add(report: Report, rendition: string | undefined, dropped: number): void {
    this.all.add(report, dropped);
    if (rendition !== undefined) this.#of(rendition)?.add(report, dropped);
  }

  /** @param rendition undefined where that is not known */
  addReception(reception: Reception, rendition: string | undefined): void {
    this.all.addReception(reception);
    if (rendition !== undefined) this.#of(rendition)?.addReception(reception);
  }

  #of(rendition: string): Figures | undefined {
    const known = this.#renditions.get(rendition);
    if (known !== undefined || this.#renditions.size >= MAX_RENDITIONS) return known;
    const figures = new Figures();
    this.#renditions.set(rendition, figures);
    return figures;
  }
}
