/**
 * A large answer is written in pieces, each when the one before has left: an answer that its client does not read is held
 * once, and not again for the socket.
 */

/** As much of an HTTP answer as is needed here. */
export interface Outgoing {
  write(piece: string, encoding: "latin1"): boolean;
  once(event: "drain", listener: () => void): unknown;
  end(): unknown;
}

const PIECE_CHARACTERS = 256 * 1024;

export const isLarge = (body: string): boolean => body.length > 2 * PIECE_CHARACTERS;

/** The head is written, with the length of the body; of that, each character is a byte. `progressed`: a piece has left. */
export function writeInPieces(response: Outgoing, body: string, progressed: () => void): void {
  let at = 0;
  const write = (): void => {
    while (at < body.length) {
      const piece = body.slice(at, at + PIECE_CHARACTERS);
      at += piece.length;
      if (!response.write(piece, "latin1")) {
        response.once("drain", () => {
          progressed();
          write();
        });
        return;
      }
    }
    response.end();
  };
  write();
}
