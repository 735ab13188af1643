// Answers one question on standard input, a line of JSON, by altcha-lib and by the
// page's own solver, in one line of JSON. Used by interop_test.go.
import fs from "node:fs";
import vm from "node:vm";
import { createChallenge, solveChallenge, verifySolution } from "altcha-lib";

const q = JSON.parse(fs.readFileSync(0, "utf8"));
vm.runInThisContext(fs.readFileSync(q.solver, "utf8"));

// theirs packs what altcha-lib found as its widget does.
async function theirs(c) {
  const found = await solveChallenge(c.challenge, c.salt, c.algorithm, c.maxnumber).promise;
  if (!found) throw new Error("altcha-lib found no number");
  return btoa(JSON.stringify({ algorithm: c.algorithm, challenge: c.challenge, number: found.number, salt: c.salt, signature: c.signature, took: found.took }));
}

const create = q.create && await createChallenge({ ...q.create, expires: new Date(q.create.expires * 1000), hmacKey: q.hmacKey });
const challenge = create || q.challenge;
const byTheirs = await theirs(challenge), byOurs = await globalThis.usherProof.solve(challenge);
console.log(JSON.stringify({
  challenge, byTheirs, byOurs,
  theirsVerified: await verifySolution(byTheirs, q.hmacKey), oursVerified: await verifySolution(byOurs, q.hmacKey),
  forgedVerified: await verifySolution(byOurs, q.hmacKey + "x"),
}));
